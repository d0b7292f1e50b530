// Runs an engine, with its transport and driver, as a part of a process.
#pragma once

#include "apps/process/process.h"
#include "client/engine.h"
#include "runtime/engine_driver.h"

#include <memory>
#include <utility>

namespace spillway::apps {

class EnginePart : public Part {
 public:
  EnginePart(runtime::Loop& loop, std::unique_ptr<client::ApiEngine> engine,
             std::unique_ptr<client::Transport> transport)
      : engine_(std::move(engine)), transport_(std::move(transport)), driver_(loop, *engine_, *transport_) {
    driver_.start();
  }

  void stop(runtime::Loop::Task done) override {
    driver_.stop();
    done();
  }

 protected:
  client::ApiEngine& engine() { return *engine_; }

  runtime::EngineDriver& driver() { return driver_; }

 private:
  std::unique_ptr<client::ApiEngine> engine_;
  std::unique_ptr<client::Transport> transport_;
  runtime::EngineDriver driver_;
};

}  // namespace spillway::apps
