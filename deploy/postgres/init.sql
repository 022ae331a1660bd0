-- Run once by the PostgreSQL image: each service owns a database of its own. Copies of template0, which takes no connections: a copy
-- of a database that has one fails.
CREATE DATABASE auth TEMPLATE template0;
CREATE DATABASE billing TEMPLATE template0;
