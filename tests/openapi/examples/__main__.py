"""Print the examples of the API, for `src/holdfast/transport/http/schemas/examples.json`; CONTRIBUTING.md says how."""

import sys

from tests.openapi.examples.recording import file_text, record

sys.stdout.write(file_text(record()))
