// Bulk by message, for who waits.
#pragma once

#include "pif/access/requests.h"
#include "pif/client/session.h"

namespace pif::client {

using access::BulkRequest;
class FileState;

// Requests for one file; run() and pump() wait for them.
class Requests : public access::Requests {
 public:
  explicit Requests(FileState& file);
  // step(), then waits for news if nothing came.
  [[nodiscard]] Status pump() { return session_.pump(*this); }
  // Until all are done.
  [[nodiscard]] Status run() { return session_.run(*this); }

 private:
  Session& session_;
};

}  // namespace pif::client
