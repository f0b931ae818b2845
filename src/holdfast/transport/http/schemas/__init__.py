"""What every operation takes and answers, for the OpenAPI document and for nothing else.

One room per noun. Each has the answers of its operations as Structs, and a table `SHAPES` with one entry for every
operation. To add an operation: write its entry beside its neighbours, or a room of its own that `table.py` gathers.
A test fails while an operation has no entry, and every answer that the tests see over HTTP is held against it.
"""
