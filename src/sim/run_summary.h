// The result of a simulated run in words: the same on a terminal and on the page of a report. Thread: any (a value).
#pragma once

#include <string>
#include <vector>

namespace spillway::sim {

struct RunSummary {
  struct Figure {
    std::string value;    // "25", "10m29s"
    std::string words;    // "pods deleted"
    std::string counter;  // its name in expectations, "deletions"; empty: it has none
    bool is_bad = false;  // a pod or a node lost something
  };

  struct Expectation {
    bool held = false;
    std::string text;  // "deletions <= 30"
    std::string seen;  // "deletions was 25"
  };

  std::string verdict;  // "passed: both expectations hold"; empty: the run has no result
  bool is_good = true;
  std::vector<std::string> sentences;  // the meaning of the figures
  std::vector<Expectation> expectations;
  std::vector<Figure> figures;
};

}  // namespace spillway::sim
