// Which workers share a machine.
#include <catch2/catch.hpp>

#include "../../libtool/src/worker/job.h"

namespace pif::tool {
namespace {

// Two workers, on LFSs that say this of themselves.
job::JobDescription job_on(std::uint64_t machine, const std::string& tcp, std::uint64_t other_machine,
                           const std::string& other_tcp) {
  job::JobDescription description;
  for (const auto& [id, at] : {std::pair(machine, tcp), std::pair(other_machine, other_tcp)}) {
    proto::Endpoints& endpoints = *description.add_nodes()->mutable_endpoints();
    endpoints.set_machine(id);
    endpoints.set_tcp(at);
  }
  return description;
}

TEST_CASE("workers whose LFSs are on one machine are near, whatever names it has") {
  CHECK(are_near(job_on(7, "tcp://10.0.0.1:1", 7, "tcp://h1:2"), 0, 1));
  CHECK(all_are_near(job_on(7, "", 7, "tcp://h1:2")));
}

TEST_CASE("workers whose LFSs are on two machines are far, also behind one address") {
  CHECK(!are_near(job_on(7, "tcp://127.0.0.1:1", 8, "tcp://127.0.0.1:2"), 0, 1));
  CHECK(!all_are_near(job_on(7, "", 8, "")));
  CHECK(!are_near(job_on(0, "tcp://127.0.0.1:1", 8, "tcp://127.0.0.1:2"), 0, 1));
}

TEST_CASE("where no machine is known the hosts of the tcp endpoints decide") {
  CHECK(are_near(job_on(0, "tcp://h1:1", 0, "tcp://h1:2"), 0, 1));
  CHECK(are_near(job_on(0, "", 0, ""), 0, 1));
  CHECK(!are_near(job_on(0, "tcp://h1:1", 0, "tcp://h2:1"), 0, 1));
}

TEST_CASE("a worker is near itself, and near nobody else in a job that is to be apart") {
  auto description = job_on(7, "tcp://h1:1", 7, "tcp://h1:2");
  description.set_apart(true);
  CHECK(are_near(description, 0, 0));
  CHECK(!are_near(description, 0, 1));
}

}  // namespace
}  // namespace pif::tool
