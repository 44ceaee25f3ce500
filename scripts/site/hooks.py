"""What MkDocs asks while it builds the site (mkdocs.yml). The pages of docs/reference are made from the library's own
tables and are never written to the source folder; the README is the first page, and the documents of the top folder
stand beside those of docs/."""

import pathlib
import re
import sys

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "site"))
import reference  # noqa: E402

TOP = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing/index.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "tests/README.md": "contributing/tests.md",
}


def moved(text, source, target):
    """The links of `source`, a document outside of docs/, as the page `target` of the site has them."""

    def link(m):
        place = (ROOT / source).parent / m[2]
        try:
            place = place.resolve().relative_to(ROOT).as_posix()
        except ValueError:
            return m[0]
        page = TOP.get(place) or (place[len("docs/") :] if place.startswith("docs/") else None)
        if page is None:
            return m[0]
        return m[1] + "../" * target.count("/") + page + (m[3] or "") + ")"

    return re.sub(r"(\]\()(?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)", link, text)


def on_files(files, config):
    pages = reference.pages(ROOT)
    for source, target in TOP.items():
        pages[target] = moved((ROOT / source).read_text(), source, target)
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_serve(server, config, builder):
    for source in TOP:
        server.watch(str(ROOT / source))
    return server
