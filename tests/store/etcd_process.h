// A member of etcd for one test binary, alone in its cluster, on a loopback port and with a directory of its own.
// Thread: the test's.
#pragma once

#include "store/scratch_directory.h"

#include <sys/types.h>

#include <string>

namespace spillway::store {

class EtcdProcess {
 public:
  /// The etcd that all tests of this process share, started by the first call. Null: this machine has no etcd.
  static EtcdProcess* shared();

  ~EtcdProcess();
  EtcdProcess(const EtcdProcess&) = delete;
  EtcdProcess& operator=(const EtcdProcess&) = delete;

  /// "http://127.0.0.1:PORT". It may not answer yet.
  const std::string& url() const { return url_; }

 private:
  explicit EtcdProcess(const std::string& program);

  ScratchDirectory directory_;
  std::string url_;
  pid_t pid_ = 0;
};

}  // namespace spillway::store
