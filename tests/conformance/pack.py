#!/usr/bin/env python3
"""Packs recorded cases into one file per area, and unpacks them for reading.

The same folders always give the same bytes: cases and files are sorted, and the archive
carries neither names nor times.
"""

import argparse
import gzip
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent


def read_case(folder: pathlib.Path) -> dict:
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes().decode("utf-8")
        for path in folder.rglob("*")
        if path.is_file()
    }
    return {"case": folder.name, "files": files}


def pack(source: pathlib.Path, target: pathlib.Path) -> int:
    cases = [read_case(folder) for folder in sorted(source.iterdir()) if folder.is_dir()]
    with target.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as out:
        for case in cases:
            line = json.dumps(case, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
            out.write(line.encode("utf-8") + b"\n")
    return len(cases)


def unpack(source: pathlib.Path, target: pathlib.Path) -> int:
    cases = [json.loads(line) for line in gzip.open(source, "rt", encoding="utf-8", newline="\n")]
    for case in cases:
        for name, text in case["files"].items():
            path = target / case["case"] / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8"))
    return len(cases)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mode", choices=["pack", "unpack"])
    parser.add_argument("folder", type=pathlib.Path, help="holds one folder per area")
    parser.add_argument("area", nargs="+")
    args = parser.parse_args()
    for area in args.area:
        archive, folder = HERE / f"{area}.jsonl.gz", args.folder / area
        count = pack(folder, archive) if args.mode == "pack" else unpack(archive, folder)
        print(f"{area}: {count} cases")
    return 0


if __name__ == "__main__":
    sys.exit(main())
