#include "scenarios/schema/churn_presets.hpp"

#include <algorithm>
#include <array>

namespace shoal::scenarios {
namespace {

duration hours(double count) {
  return from_seconds(count * 3600);
}

lifetime_options exponential(duration mean, duration at_most = {}) {
  lifetime_options out;
  out.distribution = distribution_kind::exponential;
  out.mean = mean;
  out.at_most = at_most;
  return out;
}

lifetime_options weibull(double shape, duration scale) {
  lifetime_options out;
  out.distribution = distribution_kind::weibull;
  out.scale = scale;
  out.shape = shape;
  return out;
}

// FTA is the Failure Trace Archive. Its presets are Weibull fits of availability and unavailability
// (shape, scale in hours). The fits leave out hosts that never returned.
// Source: Javadi, Kondo, Iosup and Epema, JPDC 73 (2013).
// Title: "The Failure Trace Archive: Enabling the comparison of failure measurements and models of
// distributed systems".
const std::array churn_presets{
    // sahajBERT: 40 volunteers had 600 sessions in 9.5 days. A session took 4 h in the mean and
    // 21 h at most. This gives 15.2 h from one session to the next, and 10.5 volunteers at once.
    // The form of the distributions was not published. This preset assumes exponential ones, which
    // would put the longest of 600 sessions at 26 h. The preset leaves out the time of day, and
    // several devices of one person.
    // Source: Diskin et al., "Distributed deep learning in open collaborations", NeurIPS 2021,
    // section 4.3.
    churn_preset{"volunteers", exponential(hours(4), hours(21)), exponential(hours(11.2))},
    // Peer-to-peer file sharing, OVERNET03 of the FTA.
    churn_preset{"overnet", weibull(0.85, hours(2.04)), weibull(0.44, hours(2.98))},
    // Supernodes of peer-to-peer telephony, SKYPE06 of the FTA.
    churn_preset{"skype", weibull(0.64, hours(10.86)), weibull(0.63, hours(9.48))},
    // University desktops that compute while idle, ND07CPU of the FTA.
    churn_preset{"desktop_grid", weibull(0.45, hours(4.16)), weibull(0.51, hours(0.74))},
    // Company desktops that are on or off, MICROSOFT99 of the FTA.
    churn_preset{"office", weibull(0.55, hours(35.30)), weibull(0.60, hours(9.34))},
    // Spot instances: the sources published only the number of nodes over time. This number gives a
    // rate of losses and a mean share of running nodes. The exponential distribution needs no
    // further parameter. The presets leave out simultaneous losses (85 nodes in 35 events). To
    // model these losses, replay the trace or add `outages`.
    // AWS g4dn.xlarge (one T4) in us-east-1c, over 18.5 h from the first node's start. It had 0.426
    // losses per node-hour, and 10.8 of 12 nodes ran in the mean.
    // Source: Bamboo, Thorpe et al., NSDI 2023, doc/data of its repository.
    churn_preset{"spot_t4", exponential(hours(2.35)), exponential(hours(0.266))},
    // AWS p3 (V100), over 11.4 h. It had 0.612 losses per node-hour, and 24.0 of 32 nodes ran in
    // the mean. Source: Parcae, Duan et al., NSDI 2024.
    churn_preset{"spot_v100", exponential(hours(1.634)), exponential(hours(0.545))},
};

} // namespace

const churn_preset* find_churn_preset(std::string_view name) {
  const auto found = std::find_if(churn_presets.begin(), churn_presets.end(),
                                  [&](const churn_preset& p) { return p.name == name; });
  return found == churn_presets.end() ? nullptr : &*found;
}

} // namespace shoal::scenarios
