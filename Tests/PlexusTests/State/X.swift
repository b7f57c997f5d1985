import Plexus
