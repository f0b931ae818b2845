"""The API reference at `/ui/reference`, made from the OpenAPI document.

It is shown without signing in: it contains what `/openapi.json` contains, which everybody may read.
"""
