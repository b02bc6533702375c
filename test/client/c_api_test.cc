// The C interface, used from C.
#include "../../client/src/c_api/c_handles.h"
#include "c_calls.h"
#include "fixture.h"

using namespace pif;
using namespace pif::test;

TEST_CASE("a program in C reads, writes and names files") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    fs.run(path, [](Client& client) {
      pif_connection connection;
      connection.client = std::make_unique<Client>(std::move(client));
      const char* wrong = c_calls(&connection);
      INFO((wrong != nullptr ? wrong : "") << ": " << pif_error_text(&connection));
      CHECK(wrong == nullptr);
    });
  }
}

TEST_CASE("NULL where a program in C must give something is an error, never an exception") {
  FileSystem fs(2);
  fs.run(DataPath::kAuto, [](Client& client) {
    pif_connection connection;
    connection.client = std::make_unique<Client>(std::move(client));
    const char* wrong = c_calls_with_null(&connection);
    INFO((wrong != nullptr ? wrong : "") << ": " << pif_error_text(&connection));
    CHECK(wrong == nullptr);
  });
}

TEST_CASE("a connection that could not be made says why, and every call on it too") {
  pif_connection* connection = pif_connect("/no/such/folder", nullptr);
  REQUIRE(connection != nullptr);
  CHECK(pif_error(connection) != PIF_OK);
  CHECK(std::string(pif_error_text(connection)).find("/no/such/folder") != std::string::npos);
  CHECK(pif_mkdir(connection, "/d", 0) == -PIF_E_UNAVAILABLE);
  CHECK(pif_open(connection, "/f", PIF_READ) == nullptr);
  pif_disconnect(connection);
}
