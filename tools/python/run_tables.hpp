// The figures of a run as tables of columns. Python shows the columns as NumPy arrays. A run in
// progress fills the tables, or the reader of a run directory does (scenarios/page/run_reader.hpp).
// Thread safety: as run_listener.
#pragma once

#include "scenarios/observe/run_listener.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

namespace shoal::python {

/// A column of words: `codes` are indices in `names`.
struct words {
  std::vector<std::string> names;
  std::vector<std::uint32_t> codes;

  void add(std::string_view word);

private:
  std::unordered_map<std::string, std::uint32_t> index_;
};

/// A number that is not known is NaN.
struct column {
  std::string name;
  std::variant<std::vector<double>, std::vector<std::uint64_t>, words> values;
};

struct table {
  std::string name;
  std::vector<column> columns;
};

class run_tables final : public scenarios::run_listener {
public:
  /// Keeps the first `most_transfers` transfers. Tells everything to `other`, too, which may be
  /// null and outlives the tables.
  explicit run_tables(std::uint64_t most_transfers, scenarios::run_listener* other = nullptr);

  /// The tables, which are then empty.
  std::vector<table> take();

  void begun(std::string_view run_yaml) override;
  void metrics_row(std::string_view row) override;
  void epoch_rows(std::string_view rows) override;
  void host_started(duration time, std::string_view host) override;
  void host_ended(duration time, std::string_view host, std::string_view reason) override;
  void phase(duration time, std::string_view host, std::string_view phase) override;
  void round_ended(duration time, const scenarios::heard_end& what) override;
  void round(const scenarios::heard_round& what) override;
  void contribution(duration time, std::string_view host, std::uint64_t samples,
                    double loss) override;
  void fault(duration time, std::uint64_t number, std::string_view action, bool begins,
             std::span<const std::string> hosts) override;
  void case_event(const scenarios::case_event& what) override;
  void guarded_round(const scenarios::guarded_round& what) override;
  void stage_held(duration time, std::string_view host,
                  std::optional<std::uint32_t> stage) override;
  void stage_worked(duration time, const scenarios::heard_work& what) override;
  void expert(duration time, const scenarios::heard_expert& what) override;
  void transfer(const scenarios::heard_transfer& what) override;
  bool wants_traffic() override;
  void traffic(std::span<const scenarios::sent_bytes> all) override;
  void ended(std::string_view summary) override;

private:
  /// Appends a row to a table. Each value has the type of its column.
  struct row;
  row to(std::size_t which);

  std::uint64_t most_transfers_;
  scenarios::run_listener* other_;
  std::vector<table> tables_;
  std::map<std::string, std::size_t, std::less<>> alive_; ///< rows of `peers` without an end
};

} // namespace shoal::python
