#!/usr/bin/env python3
"""Writes the rows of tests/vectors/eviction/relief.jsonl.gz.

usage: tests/policy/eviction/relief_rows.py [--check]

A second implementation of the rule in src/policy/eviction/relief.h. Rows with a note are situations by hand, the others
are random. `--check` writes nothing, and fails if the file has other rows.

A row: `in` has the memory of the node, its hard thresholds with minimum reclaims, the pods, and steps. A step with
`relieved` is an answer of the machine, any other one a reading. `out` has what follows from each step.
"""
import gzip
import json
import pathlib
import random
import sys

FILE = pathlib.Path(__file__).parents[2] / "vectors" / "eviction" / "relief.jsonl.gz"
Ki, Mi, Gi = 1 << 10, 1 << 20, 1 << 30
POD_MAX, NODE_MAX, KEPT, NEAR_MIN = 256 * Mi, Gi, 16 * Mi, 64 * Mi
INTERVAL, WINDOW, REST_MIN, REST_MAX = 1, 60, 30, 600
CRITICAL = 2_000_000_000
UNITS = {"Ki": Ki, "Mi": Mi, "Gi": Gi}


def amount(text, memory):
    if text.endswith("%"):
        # Percentages of these rows are exact in single precision.
        return int(memory * float(text[:-1]) / 100)
    return int(text[:-2]) * UNITS[text[-2:]]


class Node:
    def __init__(self, row):
        self.row = row
        self.relief, self.last_round, self.has_waited = {}, None, False

    def step(self, step):
        if "relieved" in step:
            for each in step["relieved"]:
                self.record(each, step["second"])
            return {}
        if self.last_round is not None and step["second"] - self.last_round < INTERVAL:
            return {"resting": True}
        return self.plan(step)

    def record(self, each, now):
        known = self.relief.get(each["pod"])
        if known is None or known["end"] or now - known["since"] >= WINDOW:
            known = {"since": now, "freed": 0, "counter": each.get("refaulted"), "returned": 0, "end": None, "until": 0,
                     "rests": known["rests"] if known else 0}
            self.relief[each["pod"]] = known
        known["freed"] += each["freed"]
        known["asked"], known["last"] = each["asked"], each["freed"]

    def distance(self, available):
        """Bytes until no threshold is near, and until none is met."""
        wanted, short = 0, 0
        if self.row.get("estimator") == "available":
            return wanted, short
        memory = self.row["memory"]
        for signal, value in self.row["hard"].items():
            limit = amount(value, memory)
            near = limit + max(NEAR_MIN, memory // 20)
            wanted = max(wanted, near - available)
            if available < limit:
                more = self.row["minimumReclaim"].get(signal)
                short = max(short, limit + (amount(more, memory) if more else 0) - available)
        return wanted, short

    def order(self, there):
        def key(pod):
            above = there[pod["name"]]["workingSet"] - pod["request"]
            return (above <= 0, pod["priority"], -above, pod["name"])
        return sorted((pod for pod in self.row["pods"] if pod["name"] in there), key=key)

    def evaluate(self, name, cache, now):
        known = self.relief.get(name)
        if known is None:
            return None
        if known["counter"] is not None and cache.get("refaulted") is not None:
            known["returned"] = max(cache["refaulted"] - known["counter"], 0)
        if known["end"] is None:
            returned = known["returned"] > known["freed"] // 4
            if returned or known["last"] < known["asked"] // 8:
                known["end"] = "cache-returned" if returned else "cache-stayed"
                known["until"] = now + min(REST_MIN * 2 ** min(known["rests"], 8), REST_MAX)
                known["rests"] += 1
            elif now - known["since"] >= WINDOW:
                known["rests"] = 0
        return known["end"] if known["end"] and now < known["until"] else None

    def plan(self, step):
        now, there = step["second"], step["pods"]
        wanted, short = self.distance(step["available"])
        if short == 0:
            self.has_waited = False
        if wanted <= 0:
            return {"near": False}
        self.relief = {name: known for name, known in self.relief.items() if name in there}
        left, expected, reclaim, reasons = NODE_MAX, 0, [], {}
        for place, pod in enumerate(self.order(there)):
            name, cache = pod["name"], there[pod["name"]]
            reason = "cache-taken"
            if "active" not in cache:
                reason = "observation-missing"
            elif rests := self.evaluate(name, cache, now):
                reason = rests
            elif pod["priority"] >= CRITICAL:
                reason = "critical-pod-spared"
            elif cache["inactive"] + cache["active"] <= KEPT:
                reason = "cache-small"
            elif wanted <= 0 or left <= 0:
                reason = "ranked-later"
            else:
                size = min(cache["inactive"] + cache["active"] - KEPT, POD_MAX, left, cache["inactive"] + wanted)
                falls = max(size - cache["inactive"], 0)
                left, wanted, expected = left - size, wanted - falls, expected + falls
                reclaim.append({"pod": name, "bytes": size})
            if place < 10:
                reasons[name] = reason
        waits = not self.has_waited and short > 0 and expected >= short
        if reclaim:
            self.last_round = now
        if waits:
            self.has_waited = True
        return {"near": True, "reclaim": reclaim, "pods": reasons, "expected": expected, "shortBy": short,
                "waits": waits}


def pod(name, priority=0, request=0):
    return {"name": name, "priority": priority, "request": request}


def reading(second, available, **pods):
    return {"second": second, "available": available, "pods": pods}


def cache(working_set, inactive=None, active=None, refaulted=None):
    figures = {"workingSet": working_set}
    if active is not None:
        figures |= {"inactive": inactive, "active": active}
    if refaulted is not None:
        figures["refaulted"] = refaulted
    return figures


def answer(second, name, asked, freed, refaulted=None):
    outcome = {"pod": name, "asked": asked, "freed": freed}
    if refaulted is not None:
        outcome["refaulted"] = refaulted
    return {"second": second, "relieved": [outcome]}


def node(note, pods, steps, memory=Gi, hard=None, minimum=None, **more):
    return {"note": note, "in": {"memory": memory, "hard": hard or {"memory.available": "100Mi"},
                                 "minimumReclaim": minimum or {}, "pods": pods, "steps": steps} | more}


def by_hand():
    reader, other = cache(600 * Mi, 100 * Mi, 400 * Mi, 0), cache(50 * Mi, 10 * Mi, 30 * Mi, 0)
    yield node("no threshold is near: nothing is reclaimed", [pod("reader")], [reading(0, 164 * Mi, reader=reader)])
    yield node("one byte nearer", [pod("reader")], [reading(0, 164 * Mi - 1, reader=reader)])
    yield node("near is a twentieth of a large memory", [pod("reader")],
               [reading(0, 100 * Mi + 64 * Gi // 20, reader=reader),
                reading(1, 100 * Mi + 64 * Gi // 20 - 1, reader=reader)],
               memory=64 * Gi)
    yield node("the amount that is wanted comes on top of the inactive pages", [pod("reader")],
               [reading(0, 150 * Mi, reader=reader)])
    yield node("at most 256Mi of a pod in a round", [pod("reader")],
               [reading(0, 100 * Mi, reader=cache(900 * Mi, 100 * Mi, 700 * Mi, 0))])
    yield node("inactive pages that fill the round: the working set does not fall, so no eviction waits",
               [pod("reader")],
               [reading(0, 90 * Mi, reader=cache(900 * Mi, 400 * Mi, 700 * Mi, 0))])
    yield node("at most 1Gi of all pods in a round", [pod(f"p{n}") for n in range(6)],
               [reading(0, 1 * Gi, **{f"p{n}": cache(4 * Gi, 200 * Mi, 2 * Gi, 0) for n in range(6)})],
               memory=64 * Gi)
    yield node("the order of eviction: above the request, lower priority, more above it",
               [pod("a", 0, 700 * Mi), pod("b", 10), pod("c"), pod("d")],
               [reading(0, 50 * Mi, a=reader, b=reader, c=other, d=reader)])
    yield node("a critical pod is spared", [pod("system", CRITICAL), pod("web")],
               [reading(0, 90 * Mi, system=reader, web=other)])
    yield node("a pod keeps 16Mi", [pod("a"), pod("b")],
               [reading(0, 90 * Mi, a=cache(500 * Mi, 0, 16 * Mi, 0), b=cache(400 * Mi, 0, 16 * Mi + 1, 0))])
    yield node("a pod without figures of its cache is left out", [pod("a"), pod("b")],
               [reading(0, 90 * Mi, a=cache(500 * Mi), b=reader)])
    yield node("an eviction waits when the round can end the shortage, and only once", [pod("reader")],
               [reading(0, 90 * Mi, reader=reader), reading(1, 90 * Mi, reader=reader)])
    yield node("it may wait again once memory was above the threshold", [pod("reader")],
               [reading(0, 90 * Mi, reader=reader), reading(1, 100 * Mi, reader=reader),
                reading(2, 90 * Mi, reader=reader)])
    yield node("a leak: there is not enough page cache, the eviction does not wait", [pod("leak"), pod("web")],
               [reading(0, 60 * Mi, leak=cache(800 * Mi, Mi, 2 * Mi, 0), web=other)])
    yield node("the minimum reclaim belongs to the shortage", [pod("web")],
               [reading(0, 90 * Mi, web=cache(400 * Mi, 0, 60 * Mi, 0))], minimum={"memory.available": "50Mi"})
    yield node("the minimum reclaim is reached", [pod("web")],
               [reading(0, 90 * Mi, web=cache(400 * Mi, 0, 80 * Mi, 0))], minimum={"memory.available": "50Mi"})
    yield node("one round a second", [pod("reader")],
               [reading(0, 120 * Mi, reader=reader), reading(0, 120 * Mi, reader=reader),
                reading(1, 120 * Mi, reader=reader)])
    yield node("a threshold in percent", [pod("reader")], [reading(0, 270 * Mi, reader=reader)],
               hard={"memory.available": "25%"})
    yield node("page cache counts as free: there is nothing to relieve", [pod("reader")],
               [reading(0, 50 * Mi, reader=reader)], estimator="available")
    back = [reading(0, 120 * Mi, reader=reader), answer(0, "reader", 144 * Mi, 144 * Mi, 0)]
    yield node("a quarter is read again: the pod goes on", [pod("reader")],
               back + [reading(1, 120 * Mi, reader=cache(600 * Mi, 100 * Mi, 400 * Mi, 36 * Mi))])
    yield node("more than a quarter is read again: the pod rests for 30 s", [pod("reader")],
               back + [reading(1, 120 * Mi, reader=cache(600 * Mi, 100 * Mi, 400 * Mi, 36 * Mi + 1)),
                       reading(30, 120 * Mi, reader=cache(600 * Mi, 100 * Mi, 400 * Mi, 90 * Mi)),
                       reading(31, 120 * Mi, reader=cache(600 * Mi, 100 * Mi, 400 * Mi, 90 * Mi))])
    twice = back + [reading(1, 120 * Mi, reader=cache(600 * Mi, 100 * Mi, 400 * Mi, 100 * Mi)),
                    reading(31, 120 * Mi, reader=cache(600 * Mi, 100 * Mi, 400 * Mi, 100 * Mi)),
                    answer(31, "reader", 144 * Mi, 144 * Mi, 100 * Mi)]
    yield node("it is read again after the rest: the next rest is 60 s", [pod("reader")],
               twice + [reading(32, 120 * Mi, reader=cache(600 * Mi, 100 * Mi, 400 * Mi, 200 * Mi)),
                        reading(91, 120 * Mi, reader=cache(600 * Mi, 100 * Mi, 400 * Mi, 200 * Mi)),
                        reading(92, 120 * Mi, reader=cache(600 * Mi, 100 * Mi, 400 * Mi, 200 * Mi))])
    yield node("less than an eighth comes free: the pod rests", [pod("reader")],
               [reading(0, 120 * Mi, reader=reader), answer(0, "reader", 144 * Mi, 18 * Mi - 1, 0),
                reading(1, 120 * Mi, reader=reader)])
    yield node("an eighth is enough", [pod("reader")],
               [reading(0, 120 * Mi, reader=reader), answer(0, "reader", 144 * Mi, 18 * Mi, 0),
                reading(1, 120 * Mi, reader=reader)])
    yield node("a kernel without a counter: what comes free decides alone", [pod("reader")],
               [reading(0, 120 * Mi, reader=cache(600 * Mi, 100 * Mi, 400 * Mi)),
                answer(0, "reader", 144 * Mi, 144 * Mi),
                reading(1, 120 * Mi, reader=cache(600 * Mi, 100 * Mi, 400 * Mi))])
    yield node("a pod that rests leaves its turn to the next", [pod("reader"), pod("web")],
               [reading(0, 150 * Mi, reader=reader, web=other), answer(0, "reader", 114 * Mi, 0, 0),
                reading(1, 150 * Mi, reader=reader, web=other)])
    yield node("a pod that is gone is forgotten", [pod("reader"), pod("web")],
               [reading(0, 150 * Mi, reader=reader, web=other), answer(0, "reader", 114 * Mi, 0, 0),
                reading(1, 150 * Mi, web=other), reading(2, 150 * Mi, reader=reader, web=other)])
    yield node("refaults count for a minute after the first round", [pod("reader")],
               back + [reading(59, 120 * Mi, reader=reader), answer(60, "reader", 144 * Mi, 144 * Mi, 30 * Mi),
                       reading(61, 120 * Mi, reader=cache(600 * Mi, 100 * Mi, 400 * Mi, 60 * Mi))])


def at_random(count):
    draw = random.Random(20261129)
    for _ in range(count):
        memory = draw.choice([Gi, 4 * Gi, 64 * Gi])
        hard = {"memory.available": draw.choice(["100Mi", "300Mi", "25%", "12.5%"])}
        minimum = {"memory.available": draw.choice(["50Mi", "1Gi"])} if draw.random() < 0.3 else {}
        pods = [pod(f"p{n}", draw.choice([0, 0, 0, 10, CRITICAL]), draw.choice([0, 0, 200 * Mi, 500 * Mi]))
                for n in range(draw.randint(1, 12))]
        base = Node({"memory": memory, "hard": hard, "minimumReclaim": minimum})
        far = base.distance(0)[0]
        steps, second, counters = [], 0, {each["name"]: 0 for each in pods}
        for _ in range(draw.randint(2, 8)):
            second += draw.choice([0, 1, 1, 1, 2, 10, 40, 100])
            if steps and "relieved" not in steps[-1] and draw.random() < 0.6:
                steps.append({"second": second, "relieved": [
                    {"pod": each["name"], "asked": 128 * Mi, "freed": draw.choice([0, 10 * Mi, 128 * Mi]),
                     "refaulted": counters[each["name"]]} for each in pods if draw.random() < 0.6
                     and each["name"] in steps[-1]["pods"]]})
                continue
            there = {}
            for each in pods:
                if draw.random() < 0.1:
                    continue
                counters[each["name"]] += draw.choice([0, 0, 20 * Mi, 200 * Mi])
                inactive, active = draw.randrange(300) * Mi, draw.randrange(500) * Mi
                there[each["name"]] = cache(active + draw.randrange(400) * Mi, inactive, active, counters[each["name"]])
            steps.append({"second": second, "available": draw.randrange(int(far * 1.1)), "pods": there})
        yield {"in": {"memory": memory, "hard": hard, "minimumReclaim": minimum, "pods": pods, "steps": steps}}


def rows():
    for number, row in enumerate([*by_hand(), *at_random(170)], 1):
        machine = Node(row["in"])
        out = {"steps": [machine.step(step) for step in row["in"]["steps"]]}
        yield json.dumps({"id": f"relief-{number:04}", **row, "out": out}, separators=(",", ":"))


def main():
    text = "".join(line + "\n" for line in rows()).encode()
    if "--check" in sys.argv:
        return 0 if gzip.decompress(FILE.read_bytes()) == text else "relief.jsonl.gz has other rows"
    FILE.write_bytes(gzip.compress(text, 9, mtime=0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
