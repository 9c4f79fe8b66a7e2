"""Calls a function through Python's gRPC: either dialect, plain or with certificates.

The request comes in as JSON, the response or the error goes out.
"""

import argparse
import pathlib
import sys

import grpc
from crossplane.function.proto.v1 import run_function_pb2 as v1
from crossplane.function.proto.v1 import run_function_pb2_grpc as v1_grpc
from crossplane.function.proto.v1beta1 import run_function_pb2 as v1beta1
from crossplane.function.proto.v1beta1 import run_function_pb2_grpc as v1beta1_grpc
from google.protobuf import json_format

DIALECTS = {'v1': (v1, v1_grpc), 'v1beta1': (v1beta1, v1beta1_grpc)}


def channel(target, certs):
    if not certs:
        # For a Unix socket, Python sends its path as the authority, which many servers refuse.
        options = [('grpc.default_authority', 'localhost')] if target.startswith('unix:') else []
        return grpc.insecure_channel(target, options)
    folder = pathlib.Path(certs)
    return grpc.secure_channel(
        target,
        grpc.ssl_channel_credentials(
            root_certificates=(folder / 'ca.crt').read_bytes(),
            private_key=(folder / 'tls.key').read_bytes(),
            certificate_chain=(folder / 'tls.crt').read_bytes(),
        ),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--target', required=True)
    parser.add_argument('--certs')
    parser.add_argument('--call', choices=DIALECTS, default='v1')
    args = parser.parse_args()
    messages, services = DIALECTS[args.call]
    request = json_format.Parse(sys.stdin.read(), messages.RunFunctionRequest())
    with channel(args.target, args.certs) as connection:
        stub = services.FunctionRunnerServiceStub(connection)
        try:
            response = stub.RunFunction(request, timeout=30)
        except grpc.RpcError as error:
            print(f'{error.code().name}: {error.details()}')
            return
    print(json_format.MessageToJson(response))


main()
