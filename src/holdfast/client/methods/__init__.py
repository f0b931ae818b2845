"""One method for every operation, typed and told, for both clients.

A method only names its operation's fields; `call` does the rest. Its result is whatever `call` gives: the document for
`Client`, something to await for `AsyncClient`. A test compares these rooms with the table of operations.
"""
