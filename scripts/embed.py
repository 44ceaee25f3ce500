#!/usr/bin/env python3
"""Writes fragment files as one C table of names and texts, and an index of their definitions: embed.py file... > table.c
(-s symbol; default nvg_frag_texts); or, with --plain, one file as an array of characters; or, with --hash, a hash of
them all as a macro."""

import argparse
import hashlib
import os
import re

DEFINITION = re.compile(r'^(frag|table)\s+(?=\w)([\w.]+)', re.MULTILINE)
BUCKETS = 256  # NVG_BUCKETS of lib/frag/impl.h


def quoted(line):
    return '"' + line.replace('\\', '\\\\').replace('"', '\\"').replace('\t', '\\t') + '\\n"'


def definitions(text, what):
    """(name, its offset in bytes) of each definition of that kind; definitions begin a line."""
    return [(m[2], len(text[: m.start(2)].encode())) for m in DEFINITION.finditer(text) if m[1] == what]


def bucket_of(name):  # as bucket_of of lib/frag/set.c
    h = 0
    for c in name.encode():
        h = (h * 31 + c) % BUCKETS
    return h


def index(texts):
    """The functions of all texts by the bucket of their name, in the order of the texts."""
    bucket = [[] for _ in range(BUCKETS)]
    for unit, text in enumerate(texts):
        for name, at in definitions(text, 'frag'):
            bucket[bucket_of(name)].append(f'{{ {unit}, {at} }}')
    start = [sum(map(len, bucket[:k])) for k in range(BUCKETS + 1)]
    return [
        f'const uint16_t nvg_frag_buckets[NVG_BUCKETS + 1] = {{ {", ".join(map(str, start))} }};',
        f'const nvg_frag_place nvg_frag_places[] = {{ {", ".join(p for b in bucket for p in b)} }};',
        '',
    ]


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument('-s', '--symbol', default='nvg_frag_texts')
    args.add_argument('-p', '--plain', action='store_true')
    args.add_argument('--hash', action='store_true')
    args.add_argument('-o', '--output', default='/dev/stdout')
    args.add_argument('file', nargs='*')
    args = args.parse_args()
    if args.hash:
        h = hashlib.sha256()
        for path in args.file:
            with open(path, 'rb') as f:
                h.update(f.read())
        with open(args.output, 'w', encoding='utf-8') as f:
            f.write(f'/* Made by scripts/embed.py. */\n#define {args.symbol} INT64_C(0x{h.hexdigest()[:15]})\n')
        return
    if args.plain:
        with open(args.file[0], encoding='utf-8') as f:
            lines = [quoted(line) for line in f.read().splitlines()]
        text = '\n  '.join([f'extern const char {args.symbol}[];', f'const char {args.symbol}[] ='] + lines)
        with open(args.output, 'w', encoding='utf-8') as f:
            f.write(
                f'/* Made by scripts/embed.py. */\n#pragma GCC diagnostic ignored "-Woverlength-strings"\n{text};\n'
            )
        return
    out = [
        '/* Made by scripts/embed.py. */',
        '#pragma GCC diagnostic ignored "-Woverlength-strings"',
        '#include "frag/impl.h"',
        '',
        f'const nvg_text {args.symbol}[] = {{',
    ]
    texts = []
    for path in sorted(args.file, key=os.path.basename):
        out.append(f'  {{"{os.path.basename(path)}",')
        with open(path, encoding='utf-8') as f:
            text = f.read()
        texts.append(text)
        out += ['   ' + quoted(line) for line in text.splitlines()] or ['   ""']
        tables = [at for _, at in definitions(text, 'table')]
        out += [f'   , (const int[]){{ {", ".join(map(str, tables + [0]))} }}', '  },']
    out += ['  {0, 0, 0}', '};', *index(texts)]
    with open(args.output, 'w', encoding='utf-8') as f:
        f.write('\n'.join(out))


if __name__ == '__main__':
    main()
