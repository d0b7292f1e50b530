"""`spillway completion`: what bash, zsh and fish offer behind an unfinished command line."""
import os
import pathlib
import subprocess
import tempfile
import unittest

from patience import PATIENCE

BINARY = os.environ["SPILLWAY"]


class Completion(unittest.TestCase):
    def ask(self, shell, *arguments, **more):
        path = f"{pathlib.Path(BINARY).parent}{os.pathsep}{os.environ['PATH']}"
        with tempfile.TemporaryDirectory() as home:
            done = subprocess.run([shell, *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False,
                                  stdin=subprocess.DEVNULL,
                                  env={"PATH": path, "HOME": home, "TERM": "dumb"}, **more)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split("\n")[:-1]

    def bash(self, words, **more):
        return self.ask("bash", "--norc", "-c",
                        'source <(spillway completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _spillway;'
                        ' [[ ${#COMPREPLY[@]} == 0 ]] || printf "%s\\n" "${COMPREPLY[@]}"', "bash", "spillway", *words,
                        **more)

    def zsh(self, words, **more):
        return self.ask(
            "zsh",
            "-f",
            "-c",
            (
                'compdef() { : }; _describe() { print -l -- ${(P)2} }; _files() { print -l -- files "$@" }; source'
                ' <(spillway completion zsh); words=("$@"); CURRENT=$#; _spillway || true'
            ),
            "zsh",
            "spillway",
            *words,
            **more
        )

    def fish(self, words, **more):
        return self.ask("fish", "--no-config", "-c", "spillway completion fish | source; complete -C \"$argv\"",
                        " ".join(["spillway", *words]), **more)

    def test_flags(self):
        self.assertEqual(self.bash(["up", "--log-f"]), ["--log-format"])
        self.assertEqual(self.zsh(["up", "--log-f"]), ["--log-format:Format of log lines"])
        self.assertEqual(self.fish(["up", "--log-f"]), ["--log-format\tFormat of log lines"])

    def test_commands(self):
        self.assertEqual(self.bash(["store", "de"]), ["defrag"])
        self.assertRegex("\n".join(self.zsh(["store", "de"])), r"^defrag:Rewrite the store.*$")
        self.assertRegex("\n".join(self.fish(["store", "de"])), r"^defrag\tRewrite the store.*$")
        self.assertIn("simulate", self.bash([""]))

    def test_values(self):
        self.assertEqual(self.bash(["zones", "-o", ""]), ["text", "wide", "json", "yaml"])
        self.assertEqual([each.split("\t")[0] for each in self.fish(["zones", "-o", "j"])], ["json"])

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "ca with a blank.pem").touch()
            (pathlib.Path(folder) / "certificates").mkdir()
            self.assertEqual(sorted(self.bash(["up", "--etcd-cafile", "c"], cwd=folder)),
                             ["ca with a blank.pem", "certificates"])
            self.assertEqual(self.bash(["agent", "--config-dir", "c"], cwd=folder), ["certificates"])
            self.assertEqual(self.zsh(["agent", "--config-dir", "c"], cwd=folder), ["files", "-/"])
            self.assertEqual([each.split("\t")[0] for each in self.fish(["agent", "--config-dir", "c"], cwd=folder)],
                             ["certificates/"])

    def test_an_unknown_shell(self):
        done = subprocess.run([BINARY, "completion", "ksh"], capture_output=True, text=True, timeout=PATIENCE,
                              check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn('expected bash, zsh or fish, got "ksh"', done.stderr)


if __name__ == "__main__":
    unittest.main()
