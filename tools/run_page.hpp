// The page of a run. It is served while the run goes on, if the user asks for that, and written as
// report.html into the run's directory at the end.
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
  /// `dashboard`: the address at which to serve the page; empty: it is not served. `out`: the run
  /// directory; empty: there is none. Errors: the page should be served and was not built, or
  /// cannot be served at that address. A report that cannot be written is no error here; finish()
  /// returns it.
  static result<std::unique_ptr<run_page>> open(const std::string& dashboard,
                                                const std::string& out);

  /// The address of the page; empty if it is not served.
  std::string url() const { return server_ ? server_->url() : std::string{}; }
  /// Why there will be no report; empty if the page was built.
  const std::string& missing() const noexcept { return missing_; }
  scenarios::run_view& view() { return *view_; }
  /// Makes the runner report everything to this page. Call it last, because it calls the functions
  /// that on_status already has. Requires: the page outlives the runner.
  void attach(scenarios::runner_options& to);
  /// Called after the run: sends the last figures to the viewers and writes the report. Returns a
  /// sentence if the report could not be written, else an empty string.
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
