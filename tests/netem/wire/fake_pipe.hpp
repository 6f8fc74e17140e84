// A pipe without a network. It records the sent frames, and delivers frames when a test asks for
// it.
#pragma once

#include "netem/wire/frames.hpp"
#include "netem/wire/host_link.hpp"

#include <memory>
#include <string>
#include <vector>

namespace shoal::netem::wire {

class fake_pipe final : public pipe, public receive_window {
public:
  explicit fake_pipe(int which = 0) : kind_(pipe_kinds[which]) {}

  void start(std::function<void(payload)> on_frame,
             std::function<void(const std::string&)> on_closed) override {
    frame_ = std::move(on_frame);
    closed_ = std::move(on_closed);
  }
  void send(frame what) override { sent.push_back(std::move(what)); }
  void finish() override { finished = true; }
  void close() override { closed = true; }
  std::size_t queued_bytes() const override { return queued; }
  receive_window& window() override { return *this; }
  void add(std::size_t bytes) override { unhandled += bytes; }
  void remove(std::size_t bytes) override { unhandled -= bytes; }
  bool malformed() const override { return false; }
  bool held_back() const override { return held; }
  std::string certificate() const override { return shown; }
  std::string peer() const override { return "somewhere"; }
  const std::string& kind() const override { return kind_; }

  /// Acts as if the other side had sent the bytes.
  void receive(const std::string& bytes) {
    const auto all = std::as_bytes(std::span(bytes));
    frame_(payload{std::vector<std::byte>(all.begin(), all.end())});
  }
  void break_off() { closed_("broken"); }
  /// Returns the kinds of the sent frames, and clears the record.
  std::vector<frame_kind> take_kinds() {
    std::vector<frame_kind> out;
    for (const auto& each : sent) out.push_back(static_cast<frame_kind>(each.head.at(0)));
    sent.clear();
    return out;
  }

  std::vector<frame> sent;
  bool finished = false, closed = false, held = false;
  std::size_t queued = 0, unhandled = 0;
  std::string shown; // the other side's certificate

private:
  const std::string kind_;
  std::function<void(payload)> frame_;
  std::function<void(const std::string&)> closed_;
};

inline fake_pipe& pipe_of(const host_link& link, int which) {
  return static_cast<fake_pipe&>(*link.pipes[which].through);
}

/// A link with both pipes, or with one of them.
inline std::shared_ptr<host_link> fake_link(std::vector<int> pipes = {0, 1}) {
  auto out = std::make_shared<host_link>();
  for (const auto which : pipes) out->pipes[which].through = std::make_shared<fake_pipe>(which);
  return out;
}

inline std::span<const std::byte> bytes_of(const frame& what) {
  return std::as_bytes(std::span(what.head));
}

} // namespace shoal::netem::wire
