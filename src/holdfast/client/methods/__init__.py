"""One typed and documented method for every operation, shared by both clients.

A method passes its operation's fields to `call` and returns its result: the document for `Client`, an awaitable of it
for `AsyncClient`. A test compares these methods with the table of operations.
"""
