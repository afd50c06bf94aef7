// SPDX-License-Identifier: Apache-2.0
#include "postgres_slot.hpp"

#include <utility>

namespace example {
namespace {

using driftd::consumer::Code;
using driftd::consumer::Error;
using driftd::consumer::fail;
using driftd::consumer::Result;
using driftd::consumer::SlotBinding;
using driftd::consumer::SlotConfig;
using driftd::consumer::Status;

using Connection = ConnectionPool<PGconn>::Pointer;
using Answer = std::unique_ptr<PGresult, void (*)(PGresult*)>;

Answer send(PGconn* connection, const std::string& statement) {
  return Answer(PQexec(connection, statement.c_str()), PQclear);
}

bool is_good(const Answer& answer) {
  const ExecStatusType status = PQresultStatus(answer.get());
  return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

std::string first_value(const Answer& answer) {
  return PQntuples(answer.get()) > 0 && PQnfields(answer.get()) > 0 ? PQgetvalue(answer.get(), 0, 0) : "";
}

Result<Connection> open(const SlotConfig& config) {
  const std::string host = config.host(), port = std::to_string(config.port());
  const char* const names[] = {"host", "port", "user", "password", "dbname", "connect_timeout", nullptr};
  const char* const values[] = {host.c_str(),
                                port.c_str(),
                                config.credential("username").reveal().c_str(),
                                config.credential("password").reveal().c_str(),
                                "postgres",
                                "2",
                                nullptr};
  Connection out(PQconnectdbParams(names, values, 0), PQfinish);
  if (PQstatus(out.get()) != CONNECTION_OK) {
    return fail(Code::unavailable, "PostgreSQL at " + config.backend.endpoint + ": " + PQerrorMessage(out.get()));
  }
  return out;
}

ConnectionPool<PGconn>::Open opener(const SlotConfig& config) {
  return [config] {
    auto opened = open(config);
    return opened ? std::move(*opened) : Connection(nullptr, PQfinish);
  };
}

}  // namespace

PostgresSlot::PostgresSlot(const SlotConfig& config, Pool::Pointer first) : pool_(opener(config), std::move(first)) {}

Result<std::shared_ptr<driftd::consumer::Slot>> PostgresSlot::connect(const SlotBinding& binding,
                                                                      const SlotConfig& config) {
  auto first = open(config);
  if (!first) return tl::unexpected<Error>(first.error());
  if (binding.slot_type == "primary" && first_value(send(first->get(), "SELECT pg_is_in_recovery()")) != "f") {
    return fail(Code::unavailable, "PostgreSQL at " + config.backend.endpoint + " is not a primary");
  }
  return std::shared_ptr<driftd::consumer::Slot>(new PostgresSlot(config, std::move(*first)));
}

Status PostgresSlot::update_credentials(const SlotConfig& config) {
  auto first = open(config);
  if (!first) return tl::unexpected<Error>(first.error());
  pool_.replace(opener(config), std::move(*first));
  return {};
}

void PostgresSlot::disconnect() { pool_.close(); }

Result<std::string> PostgresSlot::query(const std::string& statement) {
  auto connection = pool_.borrow();
  if (connection.get() == nullptr) return fail(Code::unavailable, "no connection to PostgreSQL");
  const Answer answer = send(connection.get(), statement);
  if (is_good(answer)) return first_value(answer);
  const std::string why = PQerrorMessage(connection.get());
  if (PQstatus(connection.get()) == CONNECTION_OK) return fail(Code::invalid, why);
  connection.drop();
  return fail(Code::unavailable, why);
}

}  // namespace example
