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

// FTA: the Weibull fits of availability and unavailability to the data sets of the Failure Trace
// Archive in Javadi, Kondo, Iosup and Epema, "The Failure Trace Archive: Enabling the comparison of
// failure measurements and models of distributed systems", JPDC 73 (2013), (shape, scale in hours).
// A host that never came back is not in such fits.
const std::array presets{
    // sahajBERT: 600 sessions of 4 h in the mean and 21 h at most in 9.5 days, by 40 volunteers
    // (Diskin et al., "Distributed
    // deep learning in open collaborations", NeurIPS 2021, section 4.3): 15.2 h from one session to
    // the next, 10.5 there
    // at once. The form of the distributions was not published: exponential is assumed, which would
    // put the longest of
    // 600 at 26 h. Left out: several devices of one person, time of day.
    churn_preset{"volunteers", exponential(hours(4), hours(21)), exponential(hours(11.2))},
    // Peer-to-peer file sharing, OVERNET03 of the FTA.
    churn_preset{"overnet", weibull(0.85, hours(2.04)), weibull(0.44, hours(2.98))},
    // Peer-to-peer telephony, SKYPE06 of the FTA: its supernodes.
    churn_preset{"skype", weibull(0.64, hours(10.86)), weibull(0.63, hours(9.48))},
    // Desktops of a university that compute when nobody uses them, ND07CPU of the FTA.
    churn_preset{"desktop_grid", weibull(0.45, hours(4.16)), weibull(0.51, hours(0.74))},
    // Desktops of a company, switched on or not, MICROSOFT99 of the FTA.
    churn_preset{"office", weibull(0.55, hours(35.30)), weibull(0.60, hours(9.34))},
    // Spot instances: only the number of nodes over time was published, which gives a rate of
    // losses and a share of
    // the time. Exponential is the distribution that assumes nothing else. Left out: many are lost
    // at once (85 in 35
    // events); replay the trace for that, or add `outages`.
    // AWS g4dn.xlarge (one T4), us-east-1c, 18.5 h after the first came: 0.426 losses per
    // node-hour, 10.8 of 12 nodes in the
    // mean (Bamboo, Thorpe et al., NSDI 2023, doc/data of its repository).
    churn_preset{"spot_t4", exponential(hours(2.35)), exponential(hours(0.266))},
    // AWS p3 (V100), 11.4 h: 0.612 losses per node-hour, 24.0 of 32 nodes in the mean (Parcae, Duan
    // et al., NSDI 2024).
    churn_preset{"spot_v100", exponential(hours(1.634)), exponential(hours(0.545))},
};

} // namespace

const churn_preset* find_churn_preset(std::string_view name) {
  const auto found = std::find_if(presets.begin(), presets.end(),
                                  [&](const churn_preset& p) { return p.name == name; });
  return found == presets.end() ? nullptr : &*found;
}

} // namespace shoal::scenarios
