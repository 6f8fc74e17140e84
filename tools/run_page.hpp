// The page of a run that goes on: served while it runs, if that is asked for, and written as
// report.html into its directory at the end.
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/page/page_server.hpp"
#include "scenarios/page/run_view.hpp"
#include "scenarios/runner/runner.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace shoal::tools {

class run_page {
public:
  /// `dashboard`: where to serve it; empty: nowhere. `out`: the run directory; empty: there is
  /// none. Errors: the page is to be served and was not built, or cannot be served there. That a
  /// report cannot be written is no error: see finish().
  static result<std::unique_ptr<run_page>> open(const std::string& dashboard,
                                                const std::string& out);

  /// Where it is served; empty: nowhere.
  std::string url() const { return server_ ? server_->url() : std::string{}; }
  scenarios::run_view& view() { return *view_; }
  /// Has the runner tell it everything. Call last, because it calls what is in on_status already.
  /// Outlives the runner.
  void attach(scenarios::runner_options& to);
  /// The runner has run: those who look on get the last figures, and the report is written. A
  /// sentence if it could not be; else empty.
  std::string finish();

private:
  run_page() = default;
  void publish();

  std::string out_, page_, missing_;
  std::unique_ptr<scenarios::run_view> view_ = std::make_unique<scenarios::run_view>();
  std::shared_ptr<scenarios::page_feed> feed_;
  std::unique_ptr<scenarios::page_server> server_;
  std::chrono::steady_clock::time_point next_{};
};

} // namespace shoal::tools
