"""The blocks of docs/python.md run as they stand, one after the other, and print what their comments say."""

import ast
import contextlib
import io
import os
import re
import shutil
import unittest

import shoal
from support import ROOT, Case

PAGE = (ROOT / "docs/python.md").read_text()


def blocks():
    """The Python blocks of the page, each with the line of its first statement."""
    for found in re.finditer(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        yield PAGE.count("\n", 0, found.start(1)) + 1, found[1]


def claims(code):
    """What `print(...)` prints by the comment at the end of its line, where the comment is a literal."""
    for line in code.splitlines():
        said = re.fullmatch(r"print\(.*\)\s+# ('[^']*')", line)
        if said:
            yield ast.literal_eval(said[1])


class Page(Case):
    def test_all_blocks_run_in_the_order_of_the_page(self):
        try:
            import pandas  # noqa: F401
        except ImportError:
            pandas = None
        shutil.copytree(ROOT / "scenarios", self.folder / "scenarios")
        before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)
        names, ran, checked = {}, 0, 0
        for line, code in blocks():
            if pandas is None:
                code = re.sub(r"^.*\.frame\(.*$", "", code, flags=re.MULTILINE)
            printed = io.StringIO()
            with self.subTest(line=line), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
                exec(compile("\n" * (line - 1) + code, "docs/python.md", "exec"), names)
            for text in claims(code):
                self.assertIn(text, printed.getvalue().splitlines(), f"docs/python.md:{line}")
                checked += 1
            ran += 1
        self.assertEqual((ran, checked), (5, 1), "the page has other blocks than this test knows")
        # The blocks did what the page says of them.
        result = names["result"]
        self.assertEqual(result.summary["seed"], 7)
        self.assertEqual(shoal.open("my-run").event_hash, result.event_hash)
        self.assertEqual(names["scenario"]["workload"], {"kind": "bowl", "size": 20})
        bowl = shoal.run(names["scenario"], set={"training.optimizer": {"kind": "sgd", "learning_rate": 0.1}})
        self.assertLess(bowl.summary["loss"]["final"], bowl.summary["loss"]["first"])

    def test_the_errors_are_those_of_the_page(self):
        shown = re.search(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1]
        file = self.write("s.yaml", "stop_time: 1min\npeers:\n  home: {count: 2, bandwith: 3Mbit}\n")
        said = []
        for scenario in (file, {"stop_time": "1min", "peers": {"home": {"cuont": 2}}}):
            with self.assertRaises(shoal.ScenarioError) as caught:
                shoal.check(scenario)
            said.append(str(caught.exception).replace(f"{self.folder}/", ""))
        for line in shown.splitlines():
            self.assertIn(line, "\n".join(said))


if __name__ == "__main__":
    unittest.main()
