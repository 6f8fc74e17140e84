// Serves the page and its data over HTTP: `/`, `/runs` (the list of runs) and `/runs/N/events`.
// The last path streams server-sent events, each
//   data: {"sections":{"run":{…},…},"done":false}
// with the sections that have changed since the previous event. The first event has all sections.
// The server has no files: any other path gives 404. One thread of libmicrohttpd answers all
// clients, and the run never waits for this thread. A slow client skips versions: it gets the
// newest version of each section when it is ready again. Limits: 256 connections, 64 streams of
// events, 16 KiB of headers. The server closes a connection if a request is incomplete after 10 s
// or the client is idle for 15 s. A client has 60 s to take an answer, and a reader of
// events 60 s for each piece.
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

/// The current sections of one run. Thread safety: any thread may call any member.
class page_feed {
public:
  explicit page_feed(run_place place) : place_(std::move(place)) {}

  const run_place& place() const noexcept { return place_; }
  /// Replaces the sections. The server does not send unchanged sections again.
  void publish(std::vector<run_view::section> sections);
  /// Marks the feed as finished: no publish() follows.
  void finish();
  /// Returns the number of clients that read this feed.
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
  /// Serves `page` (page_file.hpp) and the feeds at `address`, in the format of
  /// parse_listen_address(). Errors: an invalid address, a port in use, or an address of another
  /// machine.
  static result<std::unique_ptr<page_server>> listen(std::string_view address, std::string page,
                                                     std::vector<std::shared_ptr<page_feed>> feeds);
  /// Closes all connections. Requires: no thread calls publish() meanwhile.
  ~page_server();
  /// Adds a run after the existing runs.
  void add(std::shared_ptr<page_feed> feed);
  /// Waits until all readers of finished feeds have received everything, at most for this time.
  void drain(std::chrono::milliseconds most);
  page_server(const page_server&) = delete;

  /// Returns the URL of the page, such as 'http://127.0.0.1:8080/'.
  const std::string& url() const noexcept { return url_; }

private:
  struct state;
  page_server(std::unique_ptr<state> s, std::string url);
  std::unique_ptr<state> state_;
  std::string url_;
};

} // namespace shoal::scenarios
