"""Reads traces with OpenTelemetry's own classes: the file named by the argument has one request in each line."""

import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

count = 0
for line in open(sys.argv[1]):
    # Unknown keys and wrong types are errors. Ids are hexadecimal here, which the parser takes for base64.
    request = json_format.Parse(line, ExportTraceServiceRequest())
    for resource in request.resource_spans:
        assert any(entry.key == "service.name" for entry in resource.resource.attributes), line
        for scope in resource.scope_spans:
            for span in scope.spans:
                assert span.name and span.start_time_unix_nano <= span.end_time_unix_nano, span
                assert span.kind in (1, 3) and len(span.attributes) > 1, span
                count += 1
assert count >= 4, count
