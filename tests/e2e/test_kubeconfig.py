"""Kubeconfigs as kubectl reads them: several files, contexts chosen on the command line, programs that print
credentials.
"""
import os
import textwrap
import unittest
import unittest.mock

from harness import one_node, run, running, wait_for, workspace

TOKEN = "a-token-that-only-the-program-knows"


def write_login(folder, runs):
    """A program that prints a token, and writes a line for every time it was asked."""
    login = folder / "login"
    login.write_text(textwrap.dedent(f"""\
        #!/bin/sh
        echo "$KUBERNETES_EXEC_INFO" >> {runs}
        [ "$REGION" = north ] || exit 9
        echo '{{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{{"token":"{TOKEN}"}}}}'
        """))
    login.chmod(0o700)


def users(folder):
    """The second file: two users, one by a program beside it."""
    path = folder / "users.yaml"
    path.write_text(textwrap.dedent("""\
        users:
        - name: by-program
          user:
            exec: {apiVersion: client.authentication.k8s.io/v1, command: ./login, env: [{name: REGION, value: north}], interactiveMode: Never, provideClusterInfo: true}
        - name: stranger
          user: {token: nobody-knows-it}
        contexts:
        - {name: program, context: {cluster: spillway, user: by-program, namespace: shop}}
        - {name: stranger, context: {cluster: spillway, user: stranger}}
        """))
    return path


def cluster(folder):
    """A node and its control plane, which knows the program's token."""
    tokens = folder / "tokens.csv"
    tokens.write_text(f'{TOKEN},operator,1,"system:masters"\n')
    tokens.chmod(0o600)
    write_login(folder, folder / "runs")
    return one_node(folder, "--token-auth-file", tokens)


def joined(folder):
    return f"{folder}/kubeconfig:{folder}/none.yaml:{users(folder)}"


class Kubeconfigs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        cls.process = cls.enterClassContext(cluster(cls.folder))
        cls.admin, cls.runs, cls.joined = cls.folder / "kubeconfig", cls.folder / "runs", joined(cls.folder)

    def ask(self, *arguments, kubeconfig=None):
        with unittest.mock.patch.dict(os.environ, KUBECONFIG=kubeconfig or self.joined):
            return run(*arguments)

    def test_zones_with_two_files_and_a_program(self):
        def zones():
            code, out, err = self.ask("zones", "--context", "program")
            self.assertEqual((code, err), (0, ""))
            return out
        # For its first five seconds the node counts as new.
        wait_for("its zone", lambda: "Normal   1/1" in zones(), interval=0.3)
        told = self.runs.read_text().splitlines()[-1]
        self.assertIn('"server":"https://127.0.0.1:', told)
        self.assertIn('"certificate-authority-data":', told)

    def test_the_current_context_is_that_of_the_first_file(self):
        self.assertEqual(self.ask("zones")[0], 0)

    def test_a_user_in_place_of_that_of_the_context(self):
        self.assertEqual(self.ask("zones", "--user", "by-program")[0], 0)
        code, _, err = self.ask("zones", "--user", "stranger")
        self.assertEqual(code, 1)
        self.assertIn("nauthorized", err)

    def test_explain_uses_the_namespace_of_the_context(self):
        code, _, err = self.ask("explain", "pod/none", "--context", "program")
        self.assertEqual(code, 3)
        self.assertIn("shop/none", err)
        self.assertIn("default/none", self.ask("explain", "pod/none")[2])
        self.assertIn("cart/none", self.ask("explain", "pod/none", "--context", "program", "--namespace", "cart")[2])

    def test_hold_and_resume(self):
        self.assertEqual(self.ask("hold", "--context", "program", "--why", "test")[0], 0)
        self.assertEqual(self.ask("resume", "--context", "program")[0], 0)

    def test_a_program_that_fails_is_named(self):
        broken = self.folder / "broken.yaml"
        broken.write_text(users(self.folder).read_text().replace("north", "south"))
        code, _, err = self.ask("zones", "--context", "program", kubeconfig=f"{self.admin}:{broken}")
        self.assertEqual(code, 1)
        self.assertIn("credential program", err)
        self.assertIn("exit code 9", err)

    def test_a_context_that_does_not_exist(self):
        code, out, err = self.ask("zones", "--context", "green")
        self.assertEqual((code, out), (2, ""))
        self.assertEqual(len(err.strip().splitlines()), 1)
        self.assertIn('contexts: no entry named "green"', err)

    def test_files_of_which_none_exists(self):
        code, _, err = self.ask("zones", kubeconfig="/no/a:/no/b")
        self.assertEqual(code, 2)
        self.assertIn("/no/a:/no/b: none of these kubeconfigs exists (from KUBECONFIG)", err)


class Agents(unittest.TestCase):
    def test_an_agent_by_a_program_of_two_files(self):
        with workspace() as folder, cluster(folder) as first, \
                unittest.mock.patch.dict(os.environ, KUBECONFIG=joined(folder)), \
                running(folder, "agent", "--context", "program", "--node-name", "second", "--port", "0",
                        "--state-dir", folder / "second", "--node-memory", "256Mi"):
            wait_for("the second node", lambda: "second" in first.api.nodes_ready())
            self.assertTrue((folder / "runs").read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
