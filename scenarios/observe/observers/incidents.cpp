#include "actors/probes.hpp"
#include "kernels/base/check.hpp"
#include "scenarios/observe/observers/all.hpp"

#include <algorithm>

namespace shoal::scenarios::observing {

namespace {

class incidents_observer final : public run_observer {
public:
  explicit incidents_observer(run_books& books) : values_(books.values) {}

  void on_observation(const seen_observation& seen) override {
    if (actors::holds_alternative<actors::misbehaved>(seen.what)) ++misbehaved_;
  }
  void on_fault(const seen_fault& fault) override {
    if (fault.begins) struck_ += std::max<std::size_t>(fault.hosts.size(), 1);
  }
  void on_point(std::string_view point) override {
    const auto found = std::find(actors::probes::all.begin(), actors::probes::all.end(), point);
    SHOAL_CHECK(found != actors::probes::all.end(), "a probe is one of actors::probes::all");
    ++points_[static_cast<std::size_t>(found - actors::probes::all.begin())];
  }

  void set_metrics(duration) override {
    values_.set(metric::misbehaved, static_cast<double>(misbehaved_));
    for (std::size_t i = 0; i < points_.size(); ++i)
      values_.set(metric_by_label::points, actors::probes::all[i], points_[i]);
  }

  void finish(const end_facts&, summary& into) override { into.faults_struck = struck_; }

private:
  metrics& values_;
  std::array<std::uint64_t, actors::probes::all.size()> points_{};
  std::uint64_t misbehaved_ = 0, struck_ = 0;
};

} // namespace

result<std::unique_ptr<run_observer>> incidents(run_books& books) {
  return std::unique_ptr<run_observer>(std::make_unique<incidents_observer>(books));
}

} // namespace shoal::scenarios::observing
