#include "runtime/loop_thread.h"

#include <pthread.h>

namespace spillway::runtime {

LoopThread::LoopThread(const std::string& name)
    : loop_(std::make_shared<Loop>()), thread_([loop = loop_.get()] { loop->run({}); }) {
  // Only a label; a name that is too long is refused, and the program's is kept.
  pthread_setname_np(thread_.native_handle(), name.c_str());
}

LoopThread::~LoopThread() {
  stop();
}

void LoopThread::stop() {
  if (!thread_.joinable()) return;
  loop_->stop();
  thread_.join();
}

}  // namespace spillway::runtime
