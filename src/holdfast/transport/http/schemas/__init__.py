"""Request and response types of every operation, for the OpenAPI document and the dashboard's API reference.

One module for each noun, with response types as Structs and a table `OPERATION_SCHEMAS` of its operations. To add an
operation, add its entry there; `all_operations.py` merges the tables. A test fails while an operation has no entry, and
every response that the tests receive over HTTP is validated against its schema.
"""
