"""A strict receiver of OTLP over gRPC: every field that it receives must be OpenTelemetry's."""
import concurrent.futures
import threading
import time

import grpc
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc


def check_known(message):
    """Raises when the message has a field that the protos do not know."""
    if len(UnknownFieldSet(message)):
        raise ValueError(f"unknown fields in {type(message).__name__}")
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for one in value if hasattr(value, "append") or hasattr(value, "add") else [value]:
            check_known(one)


def value_of(any_value):
    kind = any_value.WhichOneof("value")
    if kind == "array_value":
        return [value_of(one) for one in any_value.array_value.values]
    if kind is None:
        raise ValueError("an attribute without a value")
    return getattr(any_value, kind)


def attributes_of(pairs):
    found = {}
    for pair in pairs:
        if not pair.key or pair.key in found:
            raise ValueError(f"attribute {pair.key!r} is empty or twice there")
        found[pair.key] = value_of(pair.value)
    return found


class Span:
    def __init__(self, resource, scope, span):
        if len(span.trace_id) != 16 or not any(span.trace_id):
            raise ValueError("no trace id")
        if len(span.span_id) != 8 or not any(span.span_id) or len(span.parent_span_id) not in (0, 8):
            raise ValueError("no span id")
        if not span.name or not span.kind or not scope:
            raise ValueError("a span without a name, a kind or a scope")
        if not 1_500_000_000e9 < span.start_time_unix_nano <= span.end_time_unix_nano < (time.time() + 60) * 1e9:
            raise ValueError(f"times of {span.name}")
        self.service, self.scope, self.name, self.kind = resource["service.name"], scope, span.name, span.kind
        self.trace, self.id, self.parent = span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()
        self.start, self.end = span.start_time_unix_nano, span.end_time_unix_nano
        self.attributes = attributes_of(span.attributes)
        self.events = [(event.name, event.time_unix_nano) for event in span.events]
        self.failed = span.status.code == 2
        self.flags = span.flags

    def __repr__(self):
        return f"{self.service}: {self.name} {self.id} under {self.parent or '-'} {self.attributes}"


class Receiver(trace_service_pb2_grpc.TraceServiceServicer):
    """Receives spans at 127.0.0.1:port; port 0: a free one. credentials: of gRPC; None: plain text."""

    def __init__(self, port=0, credentials=None):
        self.lock = threading.Lock()
        self.spans, self.bytes, self.wrong = [], b"", []
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(4), options=[("grpc.so_reuseport", 0)])
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(self, self.server)
        address = f"127.0.0.1:{port}"
        self.port = self.server.add_secure_port(address, credentials) if credentials else self.server.add_insecure_port(address)
        if not self.port:
            raise OSError("no port")
        self.server.start()

    def Export(self, request, context):
        try:
            check_known(request)
            spans = []
            for resource in request.resource_spans:
                names = attributes_of(resource.resource.attributes)
                for name in ("service.name", "service.version", "service.instance.id"):
                    if not names[name]:
                        raise ValueError(f"no {name}")
                for scope in resource.scope_spans:
                    spans += [Span(names, scope.scope.name, span) for span in scope.spans]
        except (ValueError, KeyError) as error:
            self.wrong.append(repr(error))
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        with self.lock:
            self.spans += spans
            self.bytes += request.SerializeToString()
        return trace_service_pb2.ExportTraceServiceResponse()

    def of(self, trace):
        with self.lock:
            return [span for span in self.spans if span.trace == trace]

    def wait_for(self, trace, names, seconds=60):
        """The spans of a trace when these names are among them."""
        until = time.monotonic() + seconds
        while True:
            spans = self.of(trace)
            missing = set(names) - {span.name for span in spans}
            if not missing:
                return spans
            if time.monotonic() > until:
                raise AssertionError(f"trace {trace} has no {sorted(missing)}, but {spans}; wrong: {self.wrong}")
            time.sleep(0.02)

    def stop(self):
        self.server.stop(0).wait()
