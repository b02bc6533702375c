#include "pif/wire/nested.h"

#include <catch2/catch.hpp>

#include "pif/proto/messages.pb.h"

namespace pif::wire {

TEST_CASE("a nested message is what its bytes say, and bytes that are no message are refused") {
  proto::EntryList list;
  list.add_entries()->set_name("a");
  list.add_entries()->mutable_attributes()->set_mode(0640);
  std::string bytes = list.SerializeAsString();
  Nested<proto::EntryList> nested;
  REQUIRE(nested.parse(bytes, "the list"));
  REQUIRE(nested->entries_size() == 2);
  CHECK((*nested).entries(0).name() == "a");
  CHECK(nested->entries(1).attributes().mode() == 0640);

  bytes.pop_back();
  const Status cut = Nested<proto::EntryList>().parse(bytes, "the list");
  REQUIRE(!cut);
  CHECK(cut.error().code == Code::kCorrupt);
  CHECK_THAT(cut.error().text, Catch::StartsWith("the list is no message"));
}

}  // namespace pif::wire
