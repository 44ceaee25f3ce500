#!/usr/bin/env python3
"""Writes fragment files as one C table of names, texts and where the names of their definitions are: embed.py file... >
table.c (-s symbol; default nvg_frag_texts); or, with --plain, one file as an array of characters; or, with --hash, a hash of
them all as a macro."""

import argparse
import hashlib
import os
import re

DEFINITION = re.compile(r'^(frag|table)\s+(?=\w)', re.MULTILINE)


def quoted(line):
    return '"' + line.replace('\\', '\\\\').replace('"', '\\"').replace('\t', '\\t') + '\\n"'


def definitions(text):
    """The offset of the name of each definition, which begins a line, in bytes; those of tables are negative."""
    at = [(-1 if m[1] == 'table' else 1) * len(text[: m.end()].encode()) for m in DEFINITION.finditer(text)]
    return ', '.join(map(str, at + [0]))


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
    for path in sorted(args.file, key=os.path.basename):
        out.append(f'  {{"{os.path.basename(path)}",')
        with open(path, encoding='utf-8') as f:
            text = f.read()
        out += ['   ' + quoted(line) for line in text.splitlines()] or ['   ""']
        out += [f'   , (const int[]){{ {definitions(text)} }}', '  },']
    out += ['  {0, 0, 0}', '};', '']
    with open(args.output, 'w', encoding='utf-8') as f:
        f.write('\n'.join(out))


if __name__ == '__main__':
    main()
