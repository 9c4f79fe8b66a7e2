"""Calls the render engine through Python's gRPC.

The request comes in as bytes, the response goes out as bytes; a status goes out as text, with exit code 3.
"""

import argparse
import sys

import grpc

METHOD = '/biplane.render.v1alpha1.RenderService/Render'


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--target', required=True)
    parser.add_argument('--authority')
    args = parser.parse_args()
    options = [('grpc.default_authority', args.authority)] if args.authority else []
    request = sys.stdin.buffer.read()
    with grpc.insecure_channel(args.target, options) as connection:
        try:
            response = connection.unary_unary(METHOD)(request, timeout=120)
        except grpc.RpcError as error:
            print(f'{error.code().name}: {error.details()}')
            sys.exit(3)
    sys.stdout.buffer.write(response)


main()
