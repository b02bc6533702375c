// Which workers share a machine.
#include <catch2/catch.hpp>

#include "../../libtool/src/messages/job.h"

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

// What each of a job's workers has of so many threads on its machine; the number of each worker's machine.
std::vector<unsigned> shares(const std::vector<std::uint64_t>& machines, unsigned threads) {
  job::JobDescription description;
  for (const std::uint64_t machine : machines) description.add_nodes()->mutable_endpoints()->set_machine(machine);
  description.set_apart(true);  // says nothing of machines
  std::vector<unsigned> all;
  for (std::uint32_t rank = 0; rank < machines.size(); ++rank)
    all.push_back(share_of_threads(description, rank, threads));
  return all;
}

TEST_CASE("the workers on one machine share its threads, those of lower rank have one more") {
  CHECK(shares({7}, 16) == std::vector<unsigned>{16});
  CHECK(shares({7, 7, 7}, 16) == std::vector<unsigned>{6, 5, 5});
  CHECK(shares({7, 8, 7}, 16) == std::vector<unsigned>{8, 16, 8});
}

TEST_CASE("a worker has a thread, however few there are for all") {
  CHECK(shares({7, 7, 7, 8}, 2) == std::vector<unsigned>{1, 1, 1, 2});
}

}  // namespace
}  // namespace pif::tool
