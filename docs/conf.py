"""Sphinx: how the documentation is built. `make docs` calls it; nothing is fetched."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from reference_pages import write_pages  # noqa: E402  found by the line above

from docs.pages.tables import all_tables  # noqa: E402
from docs.pictures import write_pictures  # noqa: E402

project = "mixsweep"
author = "the mixsweep authors"
extensions = [
    "mathml",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "pages", "reference/_generated/[bcls]*.md"]
source_suffix = {".md": "markdown"}
default_role = "code"
html_theme = "alabaster"
html_theme_options = {
    "description": "Studies of mixup training, from a study file to a paper's table",
    "fixed_sidebar": False,
    "page_width": "68rem",
    "sidebar_width": "15rem",
    "font_size": "1rem",
    "show_powered_by": False,
}
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["narrow.css"]
html_show_copyright = False
myst_enable_extensions = ["dollarmath", "deflist", "attrs_inline"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "description"
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True

write_pages(HERE / "reference" / "_generated")
write_pictures(HERE / "_pictures")
(HERE / "reference" / "_generated" / "study-tables.md").write_text(all_tables(), encoding="utf-8")
