"""Trace collector: an HTTP server that accepts OTLP, decodes the protobuf and stores the spans."""

import gzip
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


@dataclass(frozen=True)
class Seen:
    """A received span."""

    name: str
    kind: int
    trace: str
    span: str
    parent: str
    links: list[tuple[str, str]]
    told: dict[str, object]
    service: str


class Receiver:
    def __init__(self):
        self.spans, self.raw, self.paths = [], b"", set()
        receiver = self

        class HandlerContext(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                receiver.take(self.path, body)
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), HandlerContext)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def take(self, path, body):
        self.paths.add(path)
        self.raw += body
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            of = values(resource.resource.attributes)
            for scope in resource.scope_spans:
                self.spans += [seen(span, str(of["service.name"])) for span in scope.spans]

    def named(self, name, **told):
        wanted = {key.replace("__", "."): value for key, value in told.items()}
        return [span for span in self.spans if span.name == name and wanted.items() <= span.told.items()]

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def seen(span, service):
    links = [(link.trace_id.hex(), link.span_id.hex()) for link in span.links]
    parent = span.parent_span_id.hex()
    told = values(span.attributes)
    return Seen(span.name, span.kind, span.trace_id.hex(), span.span_id.hex(), parent, links, told, service)


def values(attributes):
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}
