// Between the shapes of job messages and those of the program; and what both sides of a job agree on.
#pragma once

#include <chrono>
#include <string>

#include "job.pb.h"
#include "pif/base/clock.h"
#include "pif/base/result.h"
#include "pif/client/session.h"

namespace pif::tool {

inline constexpr std::uint32_t kJobVersion = 5;
inline constexpr Duration kProgressEvery = std::chrono::milliseconds(200);
// A worker that waits, and has others on other machines, tells its controller how many letters it sent and took.
inline constexpr Duration kLetterReportInterval = std::chrono::seconds(10);
// A letter that did not come for so long, while its receiver waited, is lost.
inline constexpr Duration kLetterLost = 3 * kLetterReportInterval;
inline constexpr std::size_t kJobPartBytes =
    64u << 10;  // of a description or a result, in one message: it fits a Unix socket's packet

job::JobFile job_file_of(const client::FileParts& parts);
// Its nodes are those that requests go to: of an absent LFS, the one that stands in for it, as the layout in it does
// not say. kInvalid if the description does not hold together.
[[nodiscard]] Result<client::FileParts> parts_of(const job::JobFile& file, const job::JobDescription& description);
// A node as a worker knows it: id, name, endpoints.
proto::NodeInfo brief(const proto::NodeInfo& node);
// Whether two workers are on one machine, and may share memory: their LFSs say so (Endpoints.machine). Two that know no
// machine: whether they listen on tcp at the same host, or not at all.
bool are_near(const job::JobDescription& description, std::uint32_t a, std::uint32_t b);
bool all_are_near(const job::JobDescription& description);
// How many threads worker `rank` has, when all workers on its machine share so many: one at least. A machine is one
// also for a job that is to be apart.
unsigned share_of_threads(const job::JobDescription& description, std::uint32_t rank, unsigned threads);
// Where a worker beside that LFS listens for workers of other machines, at any port.
std::string mail_tcp(const proto::NodeInfo& node);
// Where worker `rank` of a job, on `node`, takes mail from others: in the folder that its LFS made for it alone (the
// worker host has the same rule; docs/PROTOCOL.md "Worker host"), so that no other user can take its place.
proto::Endpoints mail_endpoints(const proto::NodeInfo& node, std::uint64_t job, std::uint32_t rank);

}  // namespace pif::tool
