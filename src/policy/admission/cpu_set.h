// A set of logical CPUs, and the text the kernel and Kubernetes write it in ("0-3,8").
// Thread: any (plain value). Bounds: CPU numbers < kCpusMax. Source: cpuset(7), formats; Kubernetes docs, "Control CPU
// Management Policies on the Node".
#pragma once

#include "base/error.h"

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>

namespace spillway::admission {

inline constexpr int kCpusMax = 8192;

class CpuSet {
 public:
  CpuSet() = default;

  CpuSet(std::initializer_list<int> cpus) : cpus_(cpus) {}

  /// "0-3,8"; the empty text is the empty set. kInvalid: no list of ranges, or a number beyond kCpusMax.
  static Result<CpuSet> parse(std::string_view text);

  std::string text() const;

  int size() const { return static_cast<int>(cpus_.size()); }

  bool empty() const { return cpus_.empty(); }

  bool contains(int cpu) const { return cpus_.contains(cpu); }

  bool contains(const CpuSet& others) const;

  void add(int cpu) { cpus_.insert(cpu); }

  void add(const CpuSet& others) { cpus_.insert(others.begin(), others.end()); }

  void remove(const CpuSet& others);

  /// Ascending.
  std::set<int>::const_iterator begin() const { return cpus_.begin(); }

  std::set<int>::const_iterator end() const { return cpus_.end(); }

  friend CpuSet operator|(CpuSet a, const CpuSet& b) {
    a.add(b);
    return a;
  }

  friend CpuSet operator&(const CpuSet& a, const CpuSet& b);

  friend CpuSet operator-(CpuSet a, const CpuSet& b) {
    a.remove(b);
    return a;
  }

  friend bool operator==(const CpuSet&, const CpuSet&) = default;

 private:
  std::set<int> cpus_;
};

}  // namespace spillway::admission
