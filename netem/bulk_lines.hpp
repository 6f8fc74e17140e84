// The lines that carry bulk: one for each direction between two hosts, as long as messages wait or
// are in flight. A line has one TCP connection, or several (tcp_options::connections). A message is
// a transfer on the next free connection (netem/transport.hpp), and the others wait behind it.
// Where a line has several connections, a long message is cut into pieces, as on the wire
// (netem/wire/striped_pipe.hpp). Messages arrive in order. A cut stops a line, and the death of a
// host breaks it.
// Thread safety: none. Callers pass the time, which never goes back.
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
#include <span>
#include <vector>

namespace shoal::netem {

class bulk_lines {
public:
  /// The questions of the bulk lines to the network around them, and their effects on it.
  class surroundings {
  public:
    /// True if a cut loses messages from `from` to `to`, over `relay` if there is one.
    virtual bool blocked(host_index from, host_index to, host_index relay) = 0;
    /// A line waits at a cut.
    virtual void waits_at_cut(host_index from, host_index to, host_index relay) = 0;
    /// A message has left, and will arrive at `at`.
    virtual void arrives(std::uint32_t message, duration at) = 0;
    /// A message that had not left is lost.
    virtual void lost(std::uint32_t message) = 0;
    /// A transfer has ended. Called only if records are kept.
    virtual void ended(std::unique_ptr<transfer_record> what) = 0;
    /// next_event() may have changed. Called at most once before the next take_changed().
    virtual void changed() = 0;

  protected:
    ~surroundings() = default;
  };

  bulk_lines(message_table& messages, paths& ways, const tcp_options& tcp, bool keeps_records);
  bulk_lines(const bulk_lines&) = delete;

  // -- links ----------------------------------------------------------------

  link_id add_link(data_rate rate) { return flows_.add_link(rate.bits_per_second); }
  link_id add_link(data_rate rate, const link_queue& queue) {
    return flows_.add_link(rate.bits_per_second, queue);
  }
  void set_capacities(link_id up, data_rate up_rate, link_id down, data_rate down_rate,
                      duration now, surroundings& around);
  std::size_t transfers_on(link_id link) const { return flows_.flows_on(link); }
  /// The time that a small message waits behind bulk on its way between two hosts.
  duration queueing_delay(host_index from, host_index to, duration now) const;

  // -- messages -------------------------------------------------------------

  /// Queues a message on the line of its hosts. Returns true if a connection is free there; the
  /// caller must then call begin().
  bool append(std::uint32_t message);
  void begin(std::uint32_t message, duration now, surroundings& around) {
    start_all(messages_[message].line, now, around);
  }
  /// A message in flight has arrived.
  void arrived(std::uint32_t line);
  /// The later one of `at` and the last arrival among the messages in flight of a pair.
  duration behind_last(std::uint64_t pair, duration at) const;

  // -- time -----------------------------------------------------------------

  /// Ends the transfers that are complete by now, and begins the next ones.
  void finish(duration now, surroundings& around);
  std::optional<duration> next_event() { return flows_.next_event(); }
  /// Calls changed(), unless an earlier call has not been taken yet.
  void note_change(surroundings& around) {
    if (!std::exchange(changed_, true)) around.changed();
  }
  bool take_changed() noexcept { return std::exchange(changed_, false); }

  // -- changes of conditions ----------------------------------------------

  /// Applies changed path conditions to all lines, or to those of one host.
  void retune_all(duration now, surroundings& around);
  void retune(host_index host, duration now, surroundings& around);
  /// Loses all bulk of a host, or of one line, that has not left.
  void break_lines_of(host_index host, duration now, surroundings& around);
  void break_line(std::uint64_t pair, duration now, surroundings& around);
  /// Forgets the TCP windows of a pair, so its next transfer opens a new connection.
  void forget_window(std::uint64_t pair) {
    for (auto& each : windows_) each.erase(pair);
  }

  /// Stops every line that is blocked now.
  void stop_blocked(duration now, surroundings& around);
  /// Stops the line of that pair of hosts, if there is one.
  void stop_pair(std::uint64_t pair, duration now, surroundings& around);
  struct stopped_transfer {
    std::uint32_t line;
    transport::transfer_id flow;
  };
  /// A transfer of a pair that a cut has stopped.
  std::optional<stopped_transfer> stopped(std::uint64_t pair) const;
  /// Resumes the transfers of that line, unless it is blocked or the transfer has ended meanwhile.
  void go_on(const stopped_transfer& what, duration now, surroundings& around);

  // -- facts ----------------------------------------------------------------

  bool busy(host_index host) const noexcept {
    return by_sender_.first(host) != no_index || by_receiver_.first(host) != no_index;
  }
  /// Lines with bulk to send.
  std::size_t sending() const noexcept { return sending_; }
  /// Transfers without a connection; 0 unless there is a bug.
  std::size_t orphaned() const { return flows_.active() - transferring_; }

private:
  struct line {
    host_index from = no_host, to = no_host;
    std::uint32_t first = no_index; // the earliest message that has not left
    std::uint32_t next = no_index;  // the earliest one with bytes that no connection has
    std::uint32_t last = no_index;
    std::uint32_t under_way = 0; // messages that have left and not arrived
    std::uint32_t latest = 0;    // the connection that began a transfer last
    std::uint32_t busy = 0;      // connections with a transfer
    duration last_arrival{};     // the latest arrival so far; keeps the order under jitter
  };
  struct connection {
    std::uint32_t message = no_index; // in transfer, or a piece of it; no_index: idle
    bool stopped = false;             // by a cut
    transport::transfer_id flow{};
    std::unique_ptr<transfer_record> record{}; // if records are kept
  };

  std::uint32_t connect(host_index from, host_index to);
  void list(std::uint32_t line);
  void unlist(std::uint32_t line);
  void forget_if_idle(std::uint32_t line);
  /// The connections of a line.
  std::span<connection> connections_of(std::uint32_t line) {
    return std::span(connections_).subspan(std::size_t{line} * count_, count_);
  }
  /// Gives waiting messages to free connections.
  void start_all(std::uint32_t line, duration now, surroundings& around);
  void start_on(std::uint32_t line, std::uint32_t which, duration now, surroundings& around);
  void begin_record(connection& on, std::uint64_t bytes, duration now);
  void end_record(connection& on, duration left, duration arrives, bool cut, surroundings& around);
  void transfer_ended(const finished_transfer& flow, duration now, surroundings& around);
  void retune_line(std::uint32_t line, duration now, surroundings& around);
  void stop(std::uint32_t line, duration now, surroundings& around);
  void break_index(std::uint32_t line, duration now, surroundings& around);
  tcp_window& window_of(const line& of, std::uint32_t which, duration now);

  message_table& messages_;
  paths& paths_;
  transport flows_;
  bool keeps_records_;
  bool changed_ = false;
  const std::uint32_t count_;           // connections of a line
  std::vector<line> lines_;             // named by index
  std::vector<connection> connections_; // by line, and then by number
  std::vector<std::uint32_t> free_;
  flat_map<std::uint32_t> line_of_;     // by the pair of hosts: the line's index + 1
  index_lists by_sender_, by_receiver_; // lines with bulk to send, by host
  std::size_t sending_ = 0, transferring_ = 0;
  /// By the connection's number, and then by the pair of hosts; model `tcp` only.
  std::vector<flat_map<tcp_window>> windows_;
  std::uint64_t next_transfer_ = 1;
};

} // namespace shoal::netem
