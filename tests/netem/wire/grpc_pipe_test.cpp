// netem/wire/grpc_pipe: a stream becomes idle in each order of its last reads and writes. gRPC
// frees a stream and its connection only after that.
#include "netem/wire/frames.hpp"
#include "netem/wire/grpc_pipe.hpp"

#include <doctest/doctest.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

using namespace shoal;
using namespace shoal::netem::wire;

namespace {

/// The test plays gRPC.
class watched_pipe final : public grpc_pipe {
public:
  watched_pipe() : grpc_pipe("control", {.window_bytes = 1000}) {}

  void start(std::function<void(payload)> on_frame,
             std::function<void(const std::string&)> on_closed) override {
    go(std::move(on_frame), std::move(on_closed));
  }
  std::string certificate() const override { return {}; }
  std::string peer() const override { return {}; }

  /// A frame of so many bytes arrives.
  void arrives(std::size_t size) {
    REQUIRE(reading != nullptr);
    std::deque<frame> one;
    one.push_back({std::vector<char>(size), {}});
    std::size_t bytes = 0;
    *std::exchange(reading, nullptr) = to_grpc(one, bytes);
    read_done(true);
  }
  void read_fails() {
    REQUIRE(reading != nullptr);
    reading = nullptr;
    read_done(false);
  }
  void written(bool ok) {
    REQUIRE(writing);
    writing = false;
    write_done(ok);
  }

  grpc::ByteBuffer* reading = nullptr;
  bool writing = false;
  unsigned idles = 0, cancels = 0;

private:
  void start_read(grpc::ByteBuffer* into) override { reading = into; }
  void start_write(const grpc::ByteBuffer*) override { writing = true; }
  void start_finish() override {}
  void cancel() override { ++cancels; }
  void idle() override { ++idles; }
};

frame small() {
  return {std::vector<char>(8), {}};
}

/// A pipe whose owner has not handled what came, so that nothing is read.
void hold_back(watched_pipe& pipe) {
  pipe.start([&](const payload& each) { pipe.window().add(each.size()); },
             [](const std::string&) {});
  pipe.arrives(2000);
  REQUIRE(pipe.held_back());
  REQUIRE(pipe.reading == nullptr);
}

} // namespace

TEST_CASE("a stream whose read fails is idle after its last write") {
  watched_pipe pipe;
  pipe.start([](const payload&) {}, [](const std::string&) {});
  pipe.send(small());
  pipe.read_fails();
  CHECK(pipe.idles == 0);
  CHECK(pipe.cancels == 1);
  pipe.written(false);
  CHECK(pipe.idles == 1);
}

TEST_CASE("a stream that is held back and whose write fails is idle") {
  watched_pipe pipe;
  hold_back(pipe);
  pipe.send(small());
  pipe.written(false);
  CHECK(pipe.idles == 1);
  CHECK_FALSE(pipe.held_back());
  // The owner of the pipe handles the rest of the bytes, and closes the pipe.
  pipe.window().remove(2000);
  pipe.close();
  CHECK(pipe.reading == nullptr);
  CHECK(pipe.idles == 1);
}

TEST_CASE("a stream that is held back and closed is idle after its last write") {
  watched_pipe pipe;
  hold_back(pipe);
  pipe.send(small());
  pipe.close();
  CHECK(pipe.idles == 0);
  pipe.written(false);
  CHECK(pipe.idles == 1);
}

TEST_CASE("a stream that is held back reads again when its bytes are handled") {
  watched_pipe pipe;
  hold_back(pipe);
  pipe.window().remove(2000);
  CHECK(pipe.reading != nullptr);
  CHECK_FALSE(pipe.held_back());
  pipe.read_fails();
  CHECK(pipe.idles == 1);
}
