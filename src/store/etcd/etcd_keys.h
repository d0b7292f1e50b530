// Translates the store's keys to etcd's and back, and makes the ends of ranges of keys. Thread: any (pure).
// Source: etcd v3 API, "Key ranges".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::store {

/// Keys of the port begin with `root`; in etcd `prefix` takes its place.
class EtcdKeys {
 public:
  EtcdKeys(std::string root, std::string prefix) : root_(std::move(root)), prefix_(std::move(prefix)) {}

  std::string in_etcd(std::string_view key) const;
  /// The store's key for a key of etcd; nullopt: outside the prefix.
  std::optional<std::string> in_port(std::string_view key) const;

 private:
  std::string root_;
  std::string prefix_;
};

/// The first key behind all that begin with `prefix`; one zero byte, which is etcd's "to the end", if there is none.
std::string end_of_prefix(std::string prefix);

}  // namespace spillway::store
