"""The dashboard: pages for people, made on the server, alive in the browser.

A request comes in at `frame.py`, which asks the `gate.py` who is visiting, finds the page in `pages/__init__.py`, and
renders what the page tells with a template. Nothing here decides anything: a page reads through `visit.door.read`, an
act submits the engine's own command through `visit.door.run` with `visit.cause()`, so the log says who did it.

To add a page:

1. A room in `pages/` that ends in `PAGE = Page(name, title, key, scope, show, show_one, acts)`, and its name in
   `pages/__init__.py`. `show` takes a `Visit` and returns `Shown(template, told)`. `visit.query` has the filters of the
   address, `visit.item` the id after `/ui/<name>/`. Show nothing that `visit.by` does not cover: each part of
   a page asks for a scope of `sight.py`. What is dear to find goes through `visit.lately`.
2. A template in `templates/` that says `{% extends layout %}` and fills the block `content`. Whatever changes by
   itself stands in an element with an `id` and `data-live`: the page fetches itself again when the log grows, and such
   elements are swapped by their id. Focus, fields, open `<details>` and scroll positions are kept where there are ids.
3. Every word that an agent could have written goes through `|inert` (one line, cut), `|inert_block` or `|inert_json`.
   Links that agents wrote go through `|web_link`. Times left are `{{ bar(left, ttl) }}` of `macros.html`; they tick by
   themselves. States are `{{ state("held") }}`: a shape and a word. No style attributes and no scripts in templates:
   the policy would refuse them.
4. A form posts to `/ui/<name>/<id>` with `{{ form_token(token) }}` and a button `name="act" value="<name in acts>"`. An
   act returns a word, which the page finds as `done` when it is shown again, or a `Shown` for what is shown this once
   only. Say in `acts` which scope it needs, and show the form only to `by.may(scope)`.
5. Tests in `tests/dashboard/`: `browse(key)` opens a browser page that is signed in, and fails its test on console
   errors, violations of the policy, dialogs and requests that leave the server.
"""
