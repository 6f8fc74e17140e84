// Measures how much of a simulation could run side by side. The program `shoal_measured` has this
// meter in netem/coordinator.cpp, and tests/bench/parallel_bound runs the program.
//
// Hosts that are at least `look-ahead` apart cannot affect each other within that virtual time. So
// the work of two hosts in a window of that length may run at once, and windows follow each other.
// Work of no host (the network's flows, timers of the world, observers that wait for an instant's
// end) is done at the barriers, alone. With n workers a window takes its lone work, and then the
// larger of two. One is the work of its busiest host, the other an n-th of all hosts' work.
// SHOAL_LOOK_AHEAD_US: the look-ahead in microseconds of virtual time.
#pragma once

#define SHOAL_WORK_METER

#include "netem/ids.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace shoal::netem {

/// The sums over all windows so far, printed as a line of JSON when the program ends. One thread.
class work_sums {
public:
  static work_sums& all() {
    static work_sums it;
    return it;
  }

  void add(host_index host, std::int64_t now, double seconds) {
    if (now >= window_end_) {
      close();
      window_end_ = now + look_ahead_;
    }
    if (host == no_host) {
      alone_ += seconds;
      return;
    }
    if (host >= of_host_.size()) of_host_.resize(host + 1);
    if (of_host_[host] == 0) active_.push_back(host);
    of_host_[host] += seconds;
  }

  ~work_sums() {
    close();
    std::fprintf(
        stderr,
        "{\"windows\": %llu, \"hosts\": %.3f, \"alone\": %.3f, \"active\": %.2f, \"times\": [",
        static_cast<unsigned long long>(windows_), hosts_total_, alone_total_,
        windows_ == 0 ? 0 : active_total_ / static_cast<double>(windows_));
    for (std::size_t i = 0; i < times_.size(); ++i)
      std::fprintf(stderr, "%s%.3f", i ? ", " : "", times_[i]);
    std::fprintf(stderr, "]}\n");
  }

private:
  static constexpr std::array workers{1., 2., 4., 8., 16., 1e9};

  void close() {
    if (active_.empty() && alone_ == 0) return;
    double sum = 0, busiest = 0;
    for (const auto host : active_) {
      sum += of_host_[host];
      busiest = std::max(busiest, of_host_[host]);
      of_host_[host] = 0;
    }
    for (std::size_t i = 0; i < workers.size(); ++i)
      times_[i] += alone_ + std::max(busiest, sum / workers[i]);
    ++windows_;
    hosts_total_ += sum;
    alone_total_ += alone_;
    active_total_ += static_cast<double>(active_.size());
    active_.clear();
    alone_ = 0;
  }

  std::int64_t look_ahead_ = std::atoll(std::getenv("SHOAL_LOOK_AHEAD_US")) * 1000;
  std::int64_t window_end_ = 0;
  std::vector<double> of_host_; // seconds of this window
  std::vector<host_index> active_;
  double alone_ = 0;
  std::uint64_t windows_ = 0;
  double hosts_total_ = 0, alone_total_ = 0, active_total_ = 0;
  std::array<double, workers.size()> times_{};
};

/// Lives as long as work of one host at one virtual time. Work inside other work counts once, as
/// the outer's.
class work_meter {
public:
  work_meter(host_index host, std::int64_t now)
      : host_(host), now_(now), outermost_(current() == nullptr) {
    if (outermost_) current() = this;
  }
  work_meter(const work_meter&) = delete;
  ~work_meter() {
    if (!outermost_) return;
    current() = nullptr;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun_;
    work_sums::all().add(host_, now_, took.count());
  }

  /// Work of no host that makes actors of one host ready is that host's work: a message arrives.
  static void wakes(host_index host) {
    auto* work = current();
    if (work == nullptr) return;
    if (work->arrival_ && work->host_ != host) work->host_ = no_host;
    if (work->arrival_ || work->host_ != no_host) return;
    work->host_ = host;
    work->arrival_ = true;
  }

private:
  static work_meter*& current() {
    static work_meter* it = nullptr;
    return it;
  }
  host_index host_;
  std::int64_t now_;
  bool outermost_;
  bool arrival_ = false;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

} // namespace shoal::netem
