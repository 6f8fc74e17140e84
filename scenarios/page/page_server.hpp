// Serves the page and what it shows over HTTP: `/`, `/runs` (which there are) and `/runs/N/events`,
// server-sent events, each
//   data: {"sections":{"run":{…},…},"done":false}
// with the sections that have changed since the event before; the first one has them all. It knows
// no files: any other path is 404. One thread of libmicrohttpd answers everybody; the run never
// waits for it. Who is slow gets the newest of each section when he is ready again, not all that he
// missed. Limits: 256 connections, 64 streams of events, 16 KiB of headers; a request that is not
// there after 10 s, an answer that is not taken within 60 s, and anybody who does nothing for 15 s,
// is cut off.
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/page/run_view.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

/// What is known of one run now. Thread safety: all members may be called from any thread.
class page_feed {
public:
  explicit page_feed(run_place place) : place_(std::move(place)) {}

  const run_place& place() const noexcept { return place_; }
  /// From now on these are the sections. Those that did not change are not sent again.
  void publish(std::vector<run_view::section> sections);
  /// Nothing more will come.
  void finish();
  /// How many read along.
  unsigned readers() const noexcept { return readers_; }

private:
  friend class page_server;
  struct part {
    std::shared_ptr<const std::string> json;
    std::uint64_t version = 0;
  };
  const run_place place_;
  std::atomic<unsigned> readers_{0};
  std::mutex guard_;
  std::map<std::string, part> parts_;
  std::uint64_t version_ = 0;
  bool finished_ = false;
  std::function<void()> on_change_;
};

class page_server {
public:
  /// Serves `page` (page_file.hpp) and the feeds at `address`, as parse_listen_address() has it.
  /// Errors: it is no address; the port is in use; this machine does not have the address.
  static result<std::unique_ptr<page_server>> listen(std::string_view address, std::string page,
                                                     std::vector<std::shared_ptr<page_feed>> feeds);
  /// Cuts off who still reads. Requires: nobody publishes meanwhile.
  ~page_server();
  /// One more run, behind those that there are.
  void add(std::shared_ptr<page_feed> feed);
  /// Waits until those who read finished feeds have taken all of it, or this time has passed.
  void drain(std::chrono::milliseconds most);
  page_server(const page_server&) = delete;

  /// 'http://127.0.0.1:8080/'.
  const std::string& url() const noexcept { return url_; }

private:
  struct state;
  page_server(std::unique_ptr<state> s, std::string url);
  std::unique_ptr<state> state_;
  std::string url_;
};

} // namespace shoal::scenarios
