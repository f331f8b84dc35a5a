#!/usr/bin/env bash
# Generates the committed gRPC stubs from proto/. Run by `make proto`; `make lint` fails when the result differs.
# Usage: generate_stubs.sh OUTPUT_FOLDER PYTHON_BIN_FOLDER
set -euo pipefail
out=$1
bin=$(cd "$2" && pwd)
cd "$(dirname "$0")/.."
mkdir -p "$out"
PATH="$bin:$PATH" "$bin/python" -m grpc_tools.protoc -I proto \
  --python_out="$out" --grpc_python_out="$out" --mypy_out="$out" --mypy_grpc_out="$out" \
  proto/droidfleet/v1/*.proto
for package in droidfleet droidfleet/v1; do
  printf '"""Generated from proto/; never edited by hand (`make proto`)."""\n' > "$out/$package/__init__.py"
done
