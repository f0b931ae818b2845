"""The dashboard: HTML pages rendered on the server, and refreshed in the browser when the event log grows.

`app.py` answers every request: `access/sign_in.py` finds the browser session, `pages/__init__.py` the page, and a
template renders what the page returns. The dashboard decides nothing: a page reads through `request.ctx.read`, an
action submits an engine command through `request.ctx.run` with `request.cause()`, so the event log records who did
it.

`reference/` is different: the API reference, which is shown to everybody.

To add a page:

1. A module in `pages/` that ends in `PAGE = Page(name, title, key, operation, show, show_one, actions)`, and its
   name in `pages/__init__.py`. `show` takes a `PageRequest` and returns `TemplateResponse(template, variables)`.
   `request.query` has the filters of the address, `request.item` the id after `/ui/<name>/`. Show nothing that
   `request.by` does not cover: each part of a page asks `may_use` of `access/permissions.py`. Expensive queries go
   through `request.cache`.
2. A template in `templates/` that says `{% extends layout %}` and fills the block `content`. Content that changes
   without a click is in an element with an `id` and `data-live`: the page fetches itself again when the log grows,
   and such elements are replaced by their id. Focus, fields, open `<details>` and scroll positions are kept where
   there are ids.
3. Every text that an agent could have written goes through `|safe_line` (one line, cut), `|safe_block` or
   `|safe_json`. Links that agents wrote go through `|web_link`. Time left is `{{ time_left(left, ttl) }}` of
   `macros.html`, which counts down in the browser. States are `{{ state("held") }}`: a shape and a word. No style
   attributes and no scripts in templates: the content security policy refuses them.
4. A form posts to `/ui/<name>/<id>` with `{{ form_token(token) }}` and a button `name="act" value="<name in
   actions>"`. An action returns a word, which the page finds as `done` when it is shown again, or a
   `TemplateResponse` for what can be shown only once. Each entry of `actions` names the operation of the API that
   does the same; show the form only to keys that may use it.
5. Tests in `tests/dashboard/`: `browse(key)` opens a browser page that is signed in, and fails its test on console
   errors, violations of the content security policy, dialogs and requests that leave the server.
"""
