// The connections that carry bulk: one for each direction between two hosts, as long as it has
// something to send or under way. The first message of a connection is a transfer
// (netem/transport.hpp); the others wait behind it. A cut stops a connection, and the death of a
// host breaks it. Thread safety: none. Time comes in as an argument and never goes back.
#pragma once

#include "netem/events.hpp"
#include "netem/flat_map.hpp"
#include "netem/index_lists.hpp"
#include "netem/message_table.hpp"
#include "netem/paths.hpp"
#include "netem/transport.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace shoal::netem {

class bulk_lines {
public:
  /// The questions and effects of the lines in the network around them.
  class surroundings {
  public:
    /// Whether a cut loses what `from` sends to `to` over `relay`.
    virtual bool blocked(host_index from, host_index to, host_index relay) = 0;
    /// A connection waits at a cut.
    virtual void stalled(host_index from, host_index to, host_index relay) = 0;
    /// A message has left and will arrive at `at`.
    virtual void arrives(std::uint32_t message, duration at) = 0;
    /// A message that had not left is lost.
    virtual void lost(std::uint32_t message) = 0;
    /// A transfer has ended; only if records are kept.
    virtual void ended(std::unique_ptr<transfer_record> what) = 0;
    /// next_event() may have another answer; said once until take_changed().
    virtual void changed() = 0;

  protected:
    ~surroundings() = default;
  };

  bulk_lines(message_table& messages, paths& ways, const tcp_options& tcp, bool keeps_records);
  bulk_lines(const bulk_lines&) = delete;

  // -- links ----------------------------------------------------------------

  link_id add_link(data_rate rate) { return flows_.add_link(rate.bits_per_second); }
  void set_capacities(link_id up, data_rate up_rate, link_id down, data_rate down_rate,
                      duration now, surroundings& around);
  std::size_t transfers_on(link_id link) const { return flows_.flows_on(link); }

  // -- messages -------------------------------------------------------------

  /// A message of the table goes on the connection of its hosts. True: nothing is before it, and
  /// begin() has to follow.
  bool append(std::uint32_t message);
  void begin(std::uint32_t message, duration now, surroundings& around) {
    start_next(messages_[message].line, now, around);
  }
  /// A message that had left is there.
  void arrived(std::uint32_t line);
  /// The time `at`, or the latest arrival of what has left on the connection of a pair if that is
  /// later.
  duration behind_last(std::uint64_t pair, duration at) const;

  // -- time -----------------------------------------------------------------

  /// Ends the transfers that are done by now, and begins the next ones.
  void finish(duration now, surroundings& around);
  std::optional<duration> next_event() { return flows_.next_event(); }
  /// Has changed() said, unless it is still to be taken.
  void note_change(surroundings& around) {
    if (!std::exchange(changed_, true)) around.changed();
  }
  bool take_changed() noexcept { return std::exchange(changed_, false); }

  // -- what changes on the way ----------------------------------------------

  /// The conditions on the way are other ones: of all connections, or of those of one host.
  void retune_all(duration now, surroundings& around);
  void retune(host_index host, duration now, surroundings& around);
  /// Loses all bulk of a host, or of one connection, that has not left.
  void break_lines_of(host_index host, duration now, surroundings& around);
  void break_line(std::uint64_t pair, duration now, surroundings& around);
  /// The next transfer of a pair opens another connection.
  void forget_window(std::uint64_t pair) { windows_.erase(pair); }

  /// Stops every connection that is blocked now.
  void stop_blocked(duration now, surroundings& around);
  struct stopped_transfer {
    std::uint32_t line;
    transport::transfer_id flow;
  };
  /// The transfer of a pair that a cut has stopped.
  std::optional<stopped_transfer> stopped(std::uint64_t pair) const;
  /// Goes on with a transfer, if it is still the one that was stopped and is not blocked.
  void go_on(const stopped_transfer& what, duration now, surroundings& around);

  // -- facts ----------------------------------------------------------------

  bool busy(host_index host) const noexcept {
    return by_sender_.first(host) != no_index || by_receiver_.first(host) != no_index;
  }
  /// Connections with bulk to send.
  std::size_t sending() const noexcept { return sending_; }
  /// Transfers that no connection owns; 0 unless there is a bug.
  std::size_t orphaned() const { return flows_.active() - sending_; }

private:
  struct connection {
    host_index from = no_host, to = no_host;
    std::uint32_t first = no_index; // is being sent, the others after it
    std::uint32_t last = no_index;
    std::uint32_t under_way = 0;               // has left, will arrive
    bool stopped = false;                      // by a cut
    transport::transfer_id flow{};             // of what is being sent
    duration last_arrival{};                   // latest so far: keeps order under jitter
    std::unique_ptr<transfer_record> record{}; // of what is being sent, if records are kept
  };

  std::uint32_t connect(host_index from, host_index to);
  void list(std::uint32_t line);
  void unlist(std::uint32_t line);
  void forget_if_idle(std::uint32_t line);
  void start_next(std::uint32_t line, duration now, surroundings& around);
  void begin_record(connection& line, duration now);
  void end_record(connection& line, duration left, duration arrives, bool cut,
                  surroundings& around);
  void retune_line(std::uint32_t line, duration now, surroundings& around);
  void stop(std::uint32_t line, duration now, surroundings& around);
  void break_index(std::uint32_t line, duration now, surroundings& around);
  tcp_window& window_of(host_index from, host_index to, duration now);

  message_table& messages_;
  paths& paths_;
  transport flows_;
  bool keeps_records_;
  bool changed_ = false;
  std::vector<connection> connections_; // named by index
  std::vector<std::uint32_t> free_;
  flat_map<std::uint32_t> line_of_;     // by the pair of hosts: index of the connection + 1
  index_lists by_sender_, by_receiver_; // connections with bulk to send, by host
  std::size_t sending_ = 0;
  flat_map<tcp_window> windows_; // by the pair of hosts; model `tcp` alone
  std::uint64_t next_transfer_ = 1;
};

} // namespace shoal::netem
