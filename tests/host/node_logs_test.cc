// Goal: the files below the folder of logs are read whole, in slices, and nothing else is: no link out of the folder,
// no pipe, no device; a slow client holds up the reading, and many of them are refused.
#include "host/node_logs.h"

#include "api/exchange/paced_sink.h"
#include "support/patience.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

struct LogSink final : api::PacedSink {
  void on_response(api::Response answer) override {
    response = std::move(answer);
    ended = true;
  }

  void on_stream(api::Response head) override { response = std::move(head); }

  bool write(std::shared_ptr<const std::string> chunk) override {
    largest = std::max(largest, chunk->size());
    ++writes;
    response.body += *chunk;
    return !gone;
  }

  void on_end() override { ended = true; }

  void on_cut() override { cut = ended = true; }

  std::size_t waiting_bytes() const override { return 0; }

  void when_below(std::size_t /*bytes*/, std::function<void()> act) override { slow ? void(room = act) : act(); }

  api::Response response{.status = 0};
  std::function<void()> room;  // waits for a slow client
  std::size_t largest = 0;
  int writes = 0;
  bool ended = false;
  bool cut = false;
  bool slow = false;
  bool gone = false;
};

class NodeLogsTest : public ::testing::Test {
 protected:
  NodeLogsTest() {
    std::string name = (fs::temp_directory_path() / "node-logs-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    logs_folder_ = folder_ / "log";
    fs::create_directories(logs_folder_ / "pods");
    write("messages", "one\ntwo\n");
    write("pods/main.log", "three\n");
    std::ofstream(folder_ / "secret") << "hidden\n";
    logs_.emplace(loop_, NodeLogs::Serves::kFilesAndQueries, logs_folder_.string());
  }

  ~NodeLogsTest() override {
    logs_.reset();
    fs::remove_all(folder_);
  }

  void write(const std::string& name, std::string_view text) { std::ofstream(logs_folder_ / name) << text; }

  bool run_until(const std::function<bool()>& done) {
    const Instant deadline = loop_.now().mono + support::kPatience;
    bool reached = false;
    std::function<void()> check = [&] {
      reached = done();
      if (reached || loop_.now().mono > deadline) return loop_.stop();
      loop_.at(loop_.now().mono + milliseconds(1), [&] { check(); });
    };
    loop_.post([&] { check(); });
    loop_.run({});
    return reached;
  }

  std::shared_ptr<LogSink> send(const std::string& target, bool slow = false) {
    auto sink = std::make_shared<LogSink>();
    sink->slow = slow;
    api::Request request;
    request.target = target;
    const Result<agent::NodeRequest> asked = agent::NodeRequest::parse(std::move(request));
    EXPECT_TRUE(asked) << target;
    if (asked) logs_->get(++last_id_, *asked, sink);
    return sink;
  }

  std::shared_ptr<LogSink> get(const std::string& target) {
    const std::shared_ptr<LogSink> sink = send(target);
    EXPECT_TRUE(run_until([&] { return sink->ended; })) << target;
    return sink;
  }

  std::string text_of(const std::string& target) {
    const std::shared_ptr<LogSink> sink = get(target);
    return fmt::format("{} {}", sink->response.status, sink->response.body);
  }

  runtime::Loop loop_;
  fs::path folder_;
  fs::path logs_folder_;
  std::optional<NodeLogs> logs_;
  NodeLogs::RequestId last_id_ = 0;
};

TEST_F(NodeLogsTest, FilesAreReadWhole) {
  EXPECT_EQ(text_of("/logs/messages"), "200 one\ntwo\n");
  EXPECT_EQ(text_of("/logs/pods/main.log"), "200 three\n");
  EXPECT_EQ(text_of("/logs/?query=/pods/main.log"), "200 three\n");
  write("empty", "");
  EXPECT_EQ(text_of("/logs/empty"), "200 ");
  const auto sink = get("/logs/messages");
  EXPECT_EQ(sink->response.header("content-type"), "text/plain; charset=utf-8");
  EXPECT_EQ(sink->response.header("x-content-type-options"), "nosniff");
  EXPECT_EQ(text_of("/logs/nothing"), "404 404 page not found\n");
  EXPECT_EQ(text_of("/logs/messages/x"), "404 404 page not found\n");
  EXPECT_EQ(text_of("/logs/messages?query=ssh"), "406 path not allowed in query mode\n");
}

TEST_F(NodeLogsTest, FoldersAreLists) {
  write("a&<b>\"", "");
  const std::string head = "200 <!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n<pre>\n";
  EXPECT_EQ(text_of("/logs/"), head +
                                   "<a href=\"a%26%3Cb%3E%22\">a&amp;&lt;b&gt;&#34;</a>\n"
                                   "<a href=\"messages\">messages</a>\n"
                                   "<a href=\"pods/\">pods/</a>\n</pre>\n");
  EXPECT_EQ(text_of("/logs/pods/"), head + "<a href=\"main.log\">main.log</a>\n</pre>\n");
  EXPECT_EQ(text_of("/logs/pods"), head + "<a href=\"pods/main.log\">main.log</a>\n</pre>\n");
  EXPECT_EQ(get("/logs")->response.header("content-type"), "text/html; charset=utf-8");
}

TEST_F(NodeLogsTest, LinksLeadNowhereButToLogs) {
  fs::create_symlink("messages", logs_folder_ / "relative");
  fs::create_symlink(logs_folder_ / "pods/main.log", logs_folder_ / "absolute");
  fs::create_symlink("../secret", logs_folder_ / "out");
  fs::create_symlink(folder_ / "secret", logs_folder_ / "far");
  fs::create_symlink("..", logs_folder_ / "above");
  fs::create_symlink("loop", logs_folder_ / "loop");
  fs::create_symlink("/proc/self/environ", logs_folder_ / "own");
  EXPECT_EQ(text_of("/logs/relative"), "200 one\ntwo\n");
  EXPECT_EQ(text_of("/logs/absolute"), "200 three\n");
  for (const char* path : {"out", "far", "above", "above/secret", "above/log/messages/x", "loop", "own"})
    EXPECT_EQ(text_of(fmt::format("/logs/{}", path)), "404 404 page not found\n") << path;
  const std::string query = text_of("/logs/?query=/out");
  EXPECT_TRUE(query.starts_with("406 ") && query.ends_with("/log/out: no such file or directory\n")) << query;
}

TEST_F(NodeLogsTest, NothingButFilesIsOpened) {
  ASSERT_EQ(::mkfifo((logs_folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(text_of("/logs/pipe"), "404 404 page not found\n");
  // A pipe that was opened for reading would let this one open it for writing.
  EXPECT_LT(::open((logs_folder_ / "pipe").c_str(), O_WRONLY | O_NONBLOCK), 0);
  if (::mknod((logs_folder_ / "zero").c_str(), S_IFCHR | 0600, ::makedev(1, 5)) == 0)
    EXPECT_EQ(text_of("/logs/zero"), "404 404 page not found\n");
  EXPECT_TRUE(text_of("/logs/?query=/pods").ends_with("/log/pods: not a regular file\n"));
}

TEST_F(NodeLogsTest, AFileIsReadInSlicesAsTheClientTakesThem) {
  const std::string line = std::string(99, 'x') + "\n";
  std::string text;
  while (text.size() <= 3 * NodeLogs::kSliceBytes) text += line;
  write("large", text);
  const auto slow = send("/logs/large", true);
  ASSERT_TRUE(run_until([&] { return slow->room != nullptr; }));
  EXPECT_EQ(slow->writes, 1) << "nothing more is read for it";
  EXPECT_EQ(slow->largest, NodeLogs::kSliceBytes);
  write("large", text + "more");  // does not belong to the answer
  while (slow->room != nullptr) {
    const int before = slow->writes;
    std::exchange(slow->room, nullptr)();
    ASSERT_TRUE(run_until([&] { return slow->writes > before || slow->ended; }));
  }
  EXPECT_TRUE(slow->ended && !slow->cut);
  EXPECT_EQ(slow->response.body, text);
}

TEST_F(NodeLogsTest, AFileThatShrinksCutsItsAnswer) {
  write("large", std::string(3 * NodeLogs::kSliceBytes, 'x'));
  const auto slow = send("/logs/large", true);
  ASSERT_TRUE(run_until([&] { return slow->room != nullptr; }));
  fs::resize_file(logs_folder_ / "large", 10);
  std::exchange(slow->room, nullptr)();
  ASSERT_TRUE(run_until([&] { return slow->ended; }));
  EXPECT_TRUE(slow->cut) << "the client must not take it for the whole";
}

TEST_F(NodeLogsTest, ManySlowClientsAreRefused) {
  write("large", std::string(3 * NodeLogs::kSliceBytes, 'x'));
  std::vector<std::shared_ptr<LogSink>> slow;
  for (std::size_t i = 0; i < NodeLogs::kRequestsMax; ++i) slow.push_back(send("/logs/large", true));
  EXPECT_EQ(text_of("/logs/messages"), "503 too many queries for logs wait, try again later\n");
  logs_->close(1);
  EXPECT_FALSE(logs_->is_open(1));
  EXPECT_EQ(text_of("/logs/messages"), "200 one\ntwo\n");
  ASSERT_TRUE(run_until([&] { return slow.back()->room != nullptr; }));
  slow.back()->gone = true;
  std::exchange(slow.back()->room, nullptr)();
  EXPECT_TRUE(run_until([&] { return slow.back()->ended; }));
}

TEST_F(NodeLogsTest, WithoutQueriesTheirParametersMeanNothing) {
  logs_.emplace(loop_, NodeLogs::Serves::kFiles, logs_folder_.string());
  EXPECT_EQ(text_of("/logs/messages?query=ssh&tailLines=x"), "200 one\ntwo\n");
  EXPECT_TRUE(text_of("/logs/?query=/messages").starts_with("200 <!doctype html>"));
}

}  // namespace
}  // namespace spillway::host
