#include <catch2/catch.hpp>

#include "../../tools/pif/doctor/doctor.h"

using namespace pif;
using namespace pif::cli;

TEST_CASE("clocks that are apart are named, with who is ahead") {
  SystemStatus status;
  status.nodes.resize(3);
  status.nodes[0].name = "lfs0";
  status.nodes[1].name = "lfs1";
  status.nodes[0].clock_ahead = 2;
  const auto found = [&] {
    Doctor doctor;
    check_clocks(doctor, status);
    return doctor.findings();
  };
  REQUIRE(found().size() == 1);
  CHECK(found()[0].state == Advice::State::kOk);
  status.nodes[0].clock_ahead = -3000;
  status.nodes[1].clock_ahead = 15;
  REQUIRE(found().size() == 2);
  CHECK(found()[0].state == Advice::State::kWrong);
  CHECK(found()[0].text == "the clock of lfs0 is 3000 s behind the server's");
  CHECK(found()[1].text == "the clock of lfs1 is 15 s ahead of the server's");
}
