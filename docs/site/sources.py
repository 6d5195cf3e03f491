"""A hook of the site: pages of the repository that stand outside `docs`, and files of its source as pages to link to.

A page in `docs` links to whatever the repository has, by its path from there.  In the site the pages of the root become
separate pages.  A linked file or folder becomes a page below `source/`, so that no link leads out of the site.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from excerpts import named
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
# pages of the repository's root, and where they stand in the site
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "THIRD_PARTY_NOTICES.md": "third_party_notices.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "code_of_conduct.md",
}
LANGUAGES = {
    ".py": "python",
    ".pyi": "python",
    ".toml": "toml",
    ".xml": "xml",
    ".yml": "yaml",
    ".cff": "yaml",
    "": "text",
}
UNSEARCHED = "---\nsearch:\n  exclude: true\n---\n"  # a search is for pages
SITE_OF = {site: name for name, site in PAGES.items()}
FENCED = re.compile(r"(^(`{3,}|~{3,}).*?^\2[ \t]*$|`[^`\n]*`)", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(\]\()([^)\s]+)(\))")


def outside_code(text: str, change) -> str:
    """Applies `change` to every part of a page outside of code."""
    parts, last = [], 0
    for code in FENCED.finditer(text):
        parts += [change(text[last : code.start()]), code[0]]
        last = code.end()
    return "".join(parts) + change(text[last:])


def repository_path(src_uri: str) -> str:
    """Where a page of the site stands in the repository."""
    return SITE_OF.get(src_uri, f"docs/{src_uri}")


def site_path(path: str) -> str | None:
    """Returns the site's path of a file of the repository, or None if there is no such file."""
    place = ROOT / path
    if path in PAGES:
        return PAGES[path]
    if path.startswith("docs/tutorials/") and place.suffix == ".py":
        return path.removeprefix("docs/").removesuffix(".py") + ".md"
    if re.fullmatch(r"examples/\w+\.py", path) and place.is_file():
        return path.removesuffix(".py") + ".md"
    if path.startswith("docs/") and place.is_file() and place.suffix != ".py":
        return path.removeprefix("docs/")
    if place.is_dir():
        return f"source/{path}/index.md"
    return f"source/{path}.md" if place.is_file() else None


def targets(text: str, src_uri: str) -> set[str]:
    """The paths in the repository to which a page links."""
    found: set[str] = set()

    def note(part: str) -> str:
        for _, target, _ in LINK.findall(part):
            if not re.match(r"[a-z]+:|#", target):
                base = posixpath.dirname(repository_path(src_uri))
                found.add(posixpath.normpath(posixpath.join(base, target.partition("#")[0])))
        return part

    outside_code(text, note)
    return found | named(text)


def source_page(path: str) -> str:
    """A file of the source with its lines numbered, or what a folder holds."""
    place = ROOT / path
    if place.is_dir():
        names = sorted(p.name for p in place.iterdir() if p.suffix == ".py")
        return f"{UNSEARCHED}# {path}\n\n" + "\n".join(f"- [{name}]({name}.md)" for name in names) + "\n"
    language = LANGUAGES.get(place.suffix, "text")
    return f'{UNSEARCHED}# {path}\n\n``````{language} linenums="1"\n{place.read_text()}\n``````\n'


def add(files, config, src_uri: str, text: str) -> None:
    """A page that stands in no file of `docs`."""
    if files.get_file_from_path(src_uri) is None:
        files.append(File.generated(config, src_uri, content=text))


def on_files(files, config):
    """The pages of the root, and those of the source to which any page links."""
    for name, site in PAGES.items():
        add(files, config, site, (ROOT / name).read_text())
    todo = {path for file in files.documentation_pages() for path in targets(file.content_string, file.src_uri)}
    while todo:
        path = todo.pop()
        site = site_path(path)
        if site is None or not site.startswith("source/") or files.get_file_from_path(site):
            continue
        add(files, config, site, source_page(path))
        if (ROOT / path).is_dir():
            todo |= {f"{path}/{place.name}" for place in (ROOT / path).iterdir() if place.suffix == ".py"}
    return files


def on_page_markdown(markdown, page, config, files):
    """Links by the repository's paths become links by the site's."""
    src_uri = page.file.src_uri
    if src_uri.startswith("source/"):
        return markdown
    base = posixpath.dirname(repository_path(src_uri))

    def relink(match) -> str:
        target = match[2]
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        path, mark, anchor = target.partition("#")
        site = site_path(posixpath.normpath(posixpath.join(base, path)))
        if site is None:
            return match[0]  # a page that is made for the site, or a link that the build then reports
        here = posixpath.relpath(site, posixpath.dirname(src_uri) or ".")
        return f"{match[1]}{here}{mark}{anchor}{match[3]}"

    return outside_code(markdown, lambda part: LINK.sub(relink, part))


def slim(content: str) -> str:
    """Removes markup of code without effect on its display, a fifth of a page of source code.

    A line's anchor and the link to it become one element, without the old attribute `name`.  Names and white space
    have the colour of plain text, so they need no element.  Adjacent elements of one kind are joined.
    """
    content = re.sub(r'<a id="(__codelineno-[\d-]+)" name="\1"></a><a href="#\1">', r'<a id="\1" href="#\1">', content)
    content = re.sub(r'<span class="[nw]">([^<]*)</span>', r"\1", content)
    return re.sub(r'(<span class="(\w+)">[^<]*)</span><span class="\2">', r"\1", content)


def on_page_content(content, page, config, files):
    """Adds anchors to links to a line of a file, which MkDocs does not check; tests/test_site.py follows them."""
    content = slim(content)
    return re.sub(r'<a data-line="(\d+)" href="([^"]+)"', r'<a href="\2#__codelineno-0-\1"', content)


def on_post_build(config):
    """Delete files of the theme that the site does not load: source maps, and search in languages but English."""
    site = Path(config["site_dir"])
    for path in (*site.rglob("*.map"), *site.glob("assets/javascripts/lunr/**/*.js")):
        path.unlink()
