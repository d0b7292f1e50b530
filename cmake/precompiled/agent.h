// What nearly every file of the agent and of its host includes beyond that.
#include "agent/contract/context.h"
#include "agent/contract/journal.h"
#include "agent/contract/ports.h"
#include "client/api_client.h"
